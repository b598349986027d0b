// One-sided access to memory of other processes of this host.
//
// Memory of a Mapping::shareable() is mapped by peers, which needs the right to look into a process
// of the same user (/proc/<pid>/fd); any other memory is copied by the kernel, which needs the
// right to trace it (sys/process_memory.h). Memory of GPUs is opened by CUDA IPC, and copied by
// engines of GPUs (gpu_copies.h). A registration costs the owner a line of its ledger,
// which says to peers how long it lasts (ledger.h).
#pragma once

#include <memory>

#include "csrc/transport/rma.h"
#include "csrc/transport/shm/gpu_memories.h"
#include "csrc/transport/shm/ledger.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::transport::shm {

class PCCL_API ShmRma final : public RmaTransport {
   public:
    /// kUnavailable where memfd is missing.
    static Result<std::unique_ptr<ShmRma>> create();

    using RmaTransport::add;
    Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                              const MemoryIdentity& identity) override;
    /// By the process number that its owner told, which is right in one pid namespace alone.
    [[nodiscard]] Status reaches(const abi::MemoryDescriptor& memory) const override;
    /// Both streams are of shared memory. kUnsupported where the peer's process is not visible from
    /// here.
    Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) override;

   private:
    ShmRma(std::shared_ptr<Ledger> ledger, std::uint64_t host)
        : ledger_(std::move(ledger)), host_(host) {}
    /// But for the line.
    [[nodiscard]] Result<MemoryKey> key_for(const Memory& memory) const;

    const std::shared_ptr<Ledger> ledger_;
    const std::uint64_t host_;
    const std::shared_ptr<GpuMemories> gpus_ = std::make_shared<GpuMemories>();
};

}  // namespace pccl::transport::shm
