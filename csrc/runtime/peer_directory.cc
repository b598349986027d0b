#include "csrc/runtime/peer_directory.h"

#include <utility>

namespace pccl::runtime {

PeerDirectory::PeerDirectory(const Runtime& runtime, const bootstrap::GroupIdentity& identity,
                             Self self)
    : runtime_(runtime), identity_(identity), self_(std::move(self)) {}

void PeerDirectory::register_endpoints(std::vector<bootstrap::Endpoint> endpoints) {
    endpoints_ = std::move(endpoints);
}

transport::LinkRequest PeerDirectory::request_to(Rank peer, ChannelId channel) const {
    return {.group = identity_.group,
            .source = self_.rank,
            .destination = peer,
            .channel = channel,
            .group_size = self_.size};
}

}  // namespace pccl::runtime
