// SPDX-License-Identifier: Apache-2.0

// Registered memory of another process of this host, for copies in both directions.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <span>

#include <pccl/status.h>
#include "csrc/sys/process_memory.h"
#include "csrc/transport/rma/copy_link.h"
#include "csrc/transport/shm/gpu_memories.h"
#include "csrc/transport/shm/ledger.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::transport::shm {

class PeerMemory final : public RmaPeerMemory {
   public:
    /// Opens a memory. `owner` is the process at the other end of the link, by its number here.
    /// kUnsupported, with the reason, where its memory cannot be accessed; kUnavailable where there
    /// is no such registration.
    static Result<std::shared_ptr<PeerMemory>> open(const abi::MemoryDescriptor& memory,
                                                    pid_t owner, std::shared_ptr<GpuMemories> gpus);

    /// Copies bytes; ok only if the registration was there after the bytes had moved (ledger.h),
    /// and, for a read of memory that is not mapped, the owner. kUnavailable otherwise.
    /// `sees_owner`: the caller checks by the owner's liveness word, before and after, that it is
    /// there, so that the kernel need not check its mark.
    Status copy(const RmaCopy& wanted, bool sees_owner = false) const;
    [[nodiscard]] bool is_mapped() const { return view_.has_value(); }
    [[nodiscard]] bool is_open() const override { return line_.is_open(mark_.value); }
    /// Returns ok if the process that made it still has its memory: not if it ends, or has become
    /// another program. Makes a system call.
    [[nodiscard]] Status find_owner() const;

    // Memory of a GPU:

    static constexpr int kOwnDevice = -1;

    [[nodiscard]] bool is_of_gpu() const override { return gpu_.has_value(); }
    /// Returns a view for the copy engines of `device`, or of another GPU where these do not reach
    /// it; kOwnDevice stands for the memory's own.
    Result<GpuView> view_for(int device) const;
    /// Announces a writer, as PeerLine does.
    [[nodiscard]] bool enter() const { return line_.enter(mark_.value); }
    bool leave() const { return line_.leave(mark_.value); }
    /// Returns ok, or that the registration has ended.
    [[nodiscard]] static Status outcome(bool was_open);

   private:
    PeerMemory(pid_t owner, const MemoryKey& key, std::uint64_t nonce, PeerLine line)
        : owner_(owner),
          mark_{.address = key.line_address, .value = nonce},
          address_(key.address),
          line_(std::move(line)),
          gpu_(key.gpu) {}
    Status map(const MemoryKey& key, std::uint64_t bytes);
    [[nodiscard]] Status probe() const;
    [[nodiscard]] Result<GpuView> open_view(int device) const;
    Status copy_mapped(const RmaCopy& wanted) const;
    [[nodiscard]] Status copy_by_kernel(const RmaCopy& wanted, bool sees_owner) const;

    const pid_t owner_;
    const sys::ProcessMark mark_;  // the registration's nonce, in the owner's ledger
    const std::uint64_t address_;  // of the memory, in the owner's process
    const PeerLine line_;
    std::optional<MemoryView> view_;
    const std::optional<GpuKey> gpu_;
    std::shared_ptr<GpuMemories> gpus_;
    mutable std::map<int, GpuView> views_;  // by requested device
};

}  // namespace pccl::transport::shm
