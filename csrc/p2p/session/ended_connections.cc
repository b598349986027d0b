// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/ended_connections.h"

#include <algorithm>

namespace pccl::p2p {

void EndedConnections::add(const SessionId& peer, std::uint64_t number) {
    Ended& ended = ended_[peer.name];
    if (ended.incarnation != peer.incarnation) ended = {.incarnation = peer.incarnation};
    if (std::ranges::find(ended.numbers, number) != ended.numbers.end()) return;
    ended.numbers.push_back(number);
    if (ended.numbers.size() > kMost) ended.numbers.erase(ended.numbers.begin());
}

std::vector<std::uint64_t> EndedConnections::with(const SessionId& peer) const {
    const auto ended = ended_.find(peer.name);
    if (ended == ended_.end() || ended->second.incarnation != peer.incarnation) return {};
    return {ended->second.numbers.begin(), ended->second.numbers.end()};
}

}  // namespace pccl::p2p
