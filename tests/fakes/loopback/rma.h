// SPDX-License-Identifier: Apache-2.0

// One-sided access between the simulated processes of a loopback fabric, with planned faults.
#pragma once

#include <memory>

#include "csrc/transport/rma.h"
#include "tests/fakes/loopback/process.h"

namespace pccl::transport::loopback {

/// One-sided access of `process`.
class LoopbackRma final : public RmaTransport {
   public:
    explicit LoopbackRma(std::shared_ptr<Process> process) : process_(std::move(process)) {}

    using RmaTransport::add;
    Result<std::unique_ptr<Registration>> add(const Memory& memory,
                                              const MemoryIdentity& identity) override {
        if (memory.kind == abi::MemoryKind::kGpu)
            return Status::unsupported("pretended processes copy memory of the host alone");
        return process_->memory()->add(memory, identity);
    }
    /// Connects streams of the same fabric.
    Result<std::unique_ptr<RmaLink>> connect(RmaStreams streams) override;

   private:
    const std::shared_ptr<Process> process_;
};

}  // namespace pccl::transport::loopback
