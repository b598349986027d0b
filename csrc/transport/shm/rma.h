// SPDX-License-Identifier: Apache-2.0

// One-sided access to memory of other processes of this host.
//
// Peers map the memory of a Mapping::shareable(), which requires access to a process of the same
// user (/proc/<pid>/fd). The kernel copies any other memory, which requires the right to trace the
// process (sys/process_memory.h). CUDA IPC opens memory of GPUs, and copy engines move it
// (gpu_copies.h). A registration costs the owner a line of its ledger, which shows peers whether it
// lasts (ledger.h).
#pragma once

#include <memory>

#include "csrc/transport/rma.h"
#include "csrc/transport/shm/gpu_memories.h"
#include "csrc/transport/shm/ledger.h"
#include "csrc/transport/shm/memory_key.h"

namespace pccl::transport::shm {

class PCCL_API ShmRma final : public RmaTransport {
   public:
    /// Creates the transport; kUnavailable where memfd is missing.
    static Result<std::unique_ptr<ShmRma>> create();

    using RmaTransport::add;
    Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                              const MemoryIdentity& identity) override;
    /// Checks by the process number in the descriptor, which is valid in one pid namespace only.
    [[nodiscard]] Status reaches(const abi::MemoryDescriptor& memory) const override;
    /// Connects streams that are both of shared memory. kUnsupported where the peer's process is
    /// not visible from here.
    Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) override;

   private:
    ShmRma(std::shared_ptr<Ledger> ledger, std::uint64_t host)
        : ledger_(std::move(ledger)), host_(host) {}
    /// Returns the key without the line.
    [[nodiscard]] Result<MemoryKey> key_for(const Memory& memory) const;

    const std::shared_ptr<Ledger> ledger_;
    const std::uint64_t host_;
    const std::shared_ptr<GpuMemories> gpus_ = std::make_shared<GpuMemories>();
};

}  // namespace pccl::transport::shm
