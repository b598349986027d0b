// Registered memory of another process of this host, to be copied from and to.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <optional>
#include <span>

#include "csrc/base/status.h"
#include "csrc/sys/process_memory.h"
#include "csrc/transport/rma/copy_link.h"
#include "csrc/transport/shm/gpu_memories.h"
#include "csrc/transport/shm/ledger.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::transport::shm {

class PeerMemory final : public RmaPeerMemory {
   public:
    /// `owner` is the process at the other end of the link, as this one numbers it. kUnsupported,
    /// and why, where its memory cannot be reached; kUnavailable where there is no such
    /// registration.
    static Result<std::shared_ptr<PeerMemory>> open(const abi::MemoryDescriptor& memory,
                                                    pid_t owner, std::shared_ptr<GpuMemories> gpus);

    /// ok only if the registration was there after the bytes had moved (ledger.h), and, of a read
    /// of memory that is not mapped, the owner. kUnavailable otherwise. Who sees by the owner's
    /// sign of liveness that it is there, before and after, need not have the kernel look at its
    /// mark.
    Status copy(const RmaCopy& wanted, bool sees_owner = false) const;
    [[nodiscard]] bool is_mapped() const { return view_.has_value(); }
    [[nodiscard]] bool is_open() const override { return line_.is_open(mark_.value); }
    /// ok if the process that made it has its memory still: not when it ends, or has become
    /// another program. A system call.
    [[nodiscard]] Status find_owner() const;

    // Of a GPU:

    static constexpr int kOwnDevice = -1;

    [[nodiscard]] bool is_of_gpu() const override { return gpu_.has_value(); }
    /// For the engines of `device`, or of others where these do not reach it; kOwnDevice.
    Result<GpuView> view_for(int device) const;
    /// As of PeerLine.
    [[nodiscard]] bool enter() const { return line_.enter(mark_.value); }
    bool leave() const { return line_.leave(mark_.value); }
    /// ok, or that the registration has ended.
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
    mutable std::map<int, GpuView> views_;  // by the device that was asked for
};

}  // namespace pccl::transport::shm
