// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/verbs_rma.h"

#include <algorithm>
#include <utility>

#include "csrc/transport/verbs/rma_peer.h"

namespace pccl::transport::verbs {
namespace {

/// Returns each adapter once, in the order of the ports.
std::vector<std::shared_ptr<Adapter>> adapters_of(const std::vector<std::shared_ptr<Port>>& ports) {
    std::vector<std::shared_ptr<Adapter>> adapters;
    for (const auto& port : ports)
        if (std::ranges::find(adapters, port->adapter) == adapters.end())
            adapters.push_back(port->adapter);
    return adapters;
}

}  // namespace

VerbsRma::VerbsRma(std::vector<std::shared_ptr<Port>> ports, int pairs_of_port,
                   std::vector<GpuWay> gpu_ways)
    : ports_(std::move(ports)),
      pairs_of_port_(pairs_of_port),
      registrations_(std::make_shared<Registrations>(adapters_of(ports_), std::move(gpu_ways))) {}

Status VerbsRma::reaches(const abi::MemoryDescriptor& memory) const {
    return remote_key_of(memory).status();
}

Result<std::unique_ptr<RmaLink>> VerbsRma::connect(RmaStreams streams) {
    if (streams.out->kind() != TransportKind::kVerbs || streams.in->kind() != TransportKind::kVerbs)
        return Status::invalid_argument("a link of RDMA takes streams of RDMA");
    auto peer = std::make_unique<VerbsPeer>(static_cast<VerbsSendLink&>(*streams.out),
                                            static_cast<VerbsRecvLink&>(*streams.in),
                                            registrations_, ports_, pairs_of_port_);
    return std::unique_ptr<RmaLink>(
        std::make_unique<RmaCopyLink>(std::move(streams), std::move(peer)));
}

}  // namespace pccl::transport::verbs
