// SPDX-License-Identifier: Apache-2.0

// One-sided access by RDMA: the device of the initiator reads and writes memory that the peer has
// registered with its own.
#pragma once

#include <memory>
#include <vector>

#include "csrc/transport/rma.h"
#include "csrc/transport/verbs/port.h"
#include "csrc/transport/verbs/registrations.h"

namespace pccl::transport::verbs {

class VerbsRma final : public RmaTransport {
   public:
    /// `pairs_of_port`: queue pairs for each port of a link. `gpu_ways` are those to memory of
    /// GPUs.
    VerbsRma(std::vector<std::shared_ptr<Port>> ports, int pairs_of_port,
             std::vector<GpuWay> gpu_ways);

    using RmaTransport::add;
    Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                              const MemoryIdentity& identity) override {
        return registrations_->add(memory, identity);
    }
    [[nodiscard]] Status reaches(const abi::MemoryDescriptor& memory) const override;
    /// Connects streams that are both of RDMA.
    Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) override;

   private:
    const std::vector<std::shared_ptr<Port>> ports_;
    const int pairs_of_port_;
    const std::shared_ptr<Registrations> registrations_;
};

}  // namespace pccl::transport::verbs
