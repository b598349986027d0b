// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/peer_directory.h"

#include <algorithm>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::runtime {
namespace {

/// Adds the rank to an error, unless the error already names the peer, as those of connections do.
Status about(Rank peer, const Status& met) {
    if (met.code() != StatusCode::kUnavailable || met.peer() != kNoRank) return met;
    return Status(met.code(), concat("no way to rank ", peer, ": ", met.message()), peer);
}

}  // namespace

PeerDirectory::PeerDirectory(const Runtime& runtime, const bootstrap::GroupIdentity& identity,
                             Self self)
    : runtime_(runtime), identity_(identity), self_(std::move(self)) {}

void PeerDirectory::register_endpoints(std::vector<bootstrap::Endpoint> endpoints) {
    endpoints_ = std::move(endpoints);
    host_ranks_ = static_cast<int>(std::ranges::count(endpoints_, endpoint(self_.rank).machine,
                                                      &bootstrap::Endpoint::machine));
}

transport::LinkRequest PeerDirectory::request_to(Rank peer, ChannelId channel) const {
    return {.group = identity_.group,
            .source = self_.rank,
            .destination = peer,
            .channel = channel,
            .group_size = self_.size,
            .host_ranks = host_ranks_};
}

Result<std::string> PeerDirectory::query(const bootstrap::Endpoint& peer, Deadline deadline) const {
    auto answer = runtime_.control().query(peer.address.control, request_to(peer.rank, 0),
                                           identity_.secret, deadline);
    if (answer.is_ok()) return answer;
    return about(peer.rank, answer.status());
}

Status PeerDirectory::notify(Rank peer, const Status& reason, Deadline deadline) const {
    return about(peer,
                 runtime_.control().notify(endpoint(peer).address.control, request_to(peer, 0),
                                           identity_.secret, reason, deadline));
}

}  // namespace pccl::runtime
