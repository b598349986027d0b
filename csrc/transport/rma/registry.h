// SPDX-License-Identifier: Apache-2.0

// Registry of the memory that peers access with this process's help: by name, checked at each
// access.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/fork.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/blocks.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::transport {

/// Range that a peer requests. Any values are safe.
struct RmaRange {
    MemoryIdentity registration;
    RmaBlocks blocks;
};

/// Registry. Thread-safe: several threads use memory at the same time. The end of a registration
/// waits for uses in progress, and for copies; no use begins meanwhile.
class PCCL_API RmaRegistry : public std::enable_shared_from_this<RmaRegistry> {
   public:
    static std::shared_ptr<RmaRegistry> create() { return std::make_shared<RmaRegistry>(); }

    /// Registers a memory, with a descriptor without a key. kInvalidArgument where the id is in
    /// use, or memory of a GPU is not on it; kUnsupported for such memory where this process has no
    /// CUDA.
    Result<std::unique_ptr<Registration>> add(const Memory& memory, const MemoryIdentity& identity);
    /// Runs `use`, which must not block, on the memory that contains the range: the registration
    /// lasts until `use` returns. kUnavailable when there is no registration of that id and nonce,
    /// kInvalidArgument when a block of the range is not within it.
    Status use(const RmaRange& range, const std::function<void(MutableBytes)>& use);
    /// Returns the GPU of the range; -1: memory of the host. Errors as of use().
    [[nodiscard]] Result<int> find_device(const RmaRange& range);
    /// Begins copies in or out of the range, in memory of a GPU, which the host does not
    /// dereference: calls `begin`. Errors as of use().
    using BeginCopies = std::function<Result<std::shared_ptr<GpuEvent>>(std::byte* memory)>;
    Result<std::shared_ptr<GpuEvent>> copy(const RmaRange& range, const BeginCopies& begin);
    /// Ends a registration before its object does; returns its memory, empty where it has ended or
    /// is of a GPU.
    MutableBytes end(const MemoryIdentity& identity);
    /// Counts refused requests of peers, for unknown registrations or out of their bounds.
    void note_refusal() { refusals_.fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t refusals() const {
        return refusals_.load(std::memory_order_relaxed);
    }

   private:
    struct RegistryRecord {
        std::uint64_t nonce = 0;
        MutableBytes memory;
        int device = -1;
        std::vector<std::shared_ptr<GpuEvent>> copies{};  // possibly in progress
        int uses = 0;                                     // in progress
        bool is_ending = false;                           // peers do not reach it any more
    };
    /// Finds a registration. The caller holds mutex_.
    Result<RegistryRecord*> find(const RmaRange& range);
    void end_use(RegistryRecord& entry);

    std::atomic<std::uint64_t> refusals_{0};
    std::mutex mutex_;
    std::map<std::uint64_t, RegistryRecord> entries_;
    std::condition_variable unused_;  // after the last use of a registration that is ending
};

}  // namespace pccl::transport
