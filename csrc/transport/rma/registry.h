// The memory that a process lets its peers reach with its own help: by name, checked at each
// access.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/status.h"
#include "csrc/transport/rma.h"
#include "csrc/transport/rma/blocks.h"
#include "csrc/transport/rma/gpu_stream.h"

namespace pccl::transport {

/// What a peer asks for. Any values are safe.
struct RmaRange {
    MemoryIdentity registration;
    RmaBlocks blocks;
};

/// Safe from every thread. A registration that ends waits for uses under way, and for copies.
class PCCL_API RmaRegistry : public std::enable_shared_from_this<RmaRegistry> {
   public:
    static std::shared_ptr<RmaRegistry> create() { return std::make_shared<RmaRegistry>(); }

    /// The descriptor has no key. kInvalidArgument where the id is in use, or memory of a GPU is
    /// not on it; kUnsupported for such memory where this process has no CUDA.
    Result<std::unique_ptr<Registration>> add(const Memory& memory, const MemoryIdentity& identity);
    /// Runs `use` on the memory that the range is within: what it has done before it returns is
    /// done while the registration lasts. kUnavailable when there is none of that id and nonce,
    /// kInvalidArgument when a block of the range is not within it.
    Status use(const RmaRange& range, const std::function<void(MutableBytes)>& use);
    /// Whether there is such a range, and on which GPU; -1: in memory of the host. Errors as above.
    [[nodiscard]] Result<int> find_device(const RmaRange& range);
    /// As use(), of memory of a GPU, at whose addresses nobody looks: `begin` begins copies in or
    /// out of the range.
    using BeginCopies = std::function<Result<std::shared_ptr<GpuEvent>>(std::byte* memory)>;
    Result<std::shared_ptr<GpuEvent>> copy(const RmaRange& range, const BeginCopies& begin);
    /// Before its object does; returns the memory, none where it has ended or is of a GPU.
    MutableBytes end(const MemoryIdentity& identity);
    /// Requests of peers that were for what there is not, so far.
    void note_refusal() { refusals_.fetch_add(1, std::memory_order_relaxed); }
    [[nodiscard]] std::uint64_t refusals() const {
        return refusals_.load(std::memory_order_relaxed);
    }

   private:
    struct RegisteredMemory {
        std::uint64_t nonce = 0;
        MutableBytes memory;
        int device = -1;
        std::vector<std::shared_ptr<GpuEvent>> copies{};  // that may be under way
    };
    /// Under mutex_.
    Result<RegisteredMemory*> find(const RmaRange& range);

    std::atomic<std::uint64_t> refusals_{0};
    std::mutex mutex_;
    std::map<std::uint64_t, RegisteredMemory> entries_;
};

}  // namespace pccl::transport
