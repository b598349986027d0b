// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/make_connector.h"

#include "csrc/transport/verbs/cm_connector.h"

namespace pccl::transport::verbs {
namespace {

class DirectConnector final : public Connector {
   public:
    Status start(std::span<QueuePair* const> pairs, std::span<const LaneEnd> peer) override {
        for (std::size_t i = 0; i < pairs.size(); ++i) PCCL_TRY(pairs[i]->connect(peer[i].pair));
        return Status::ok();
    }
    void describe(std::span<LaneEnd>) const override {}
    Result<bool> advance() override { return true; }
    [[nodiscard]] int event_fd() const override { return -1; }
};

}  // namespace

std::unique_ptr<Connector> make_connector(ConnectWay way, Connector::Role role) {
    if (way != ConnectWay::kRdmaCm) return std::make_unique<DirectConnector>();
    if (role == Connector::Role::kInitiator) return std::make_unique<CmInitiator>();
    return std::make_unique<CmResponder>();
}

}  // namespace pccl::transport::verbs
