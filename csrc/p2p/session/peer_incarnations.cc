// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/peer_incarnations.h"

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"

namespace pccl::p2p {

void PeerIncarnations::Known::replace_by(const ConnectionInfo& peer) {
    std::erase(displaced, peer.id.incarnation);
    if (meant.id != peer.id) displaced.push_back(meant.id.incarnation);
    if (displaced.size() > kMostDisplaced) displaced.erase(displaced.begin());
    meant = peer;
}

PeerIncarnations::Known& PeerIncarnations::learn(const ConnectionInfo& peer) {
    const auto [known, is_new] = known_.try_emplace(peer.id.name, Known{.meant = peer});
    if (!is_new) {
        if (known->second.meant.id != peer.id) known->second.is_loaded = false;
        known->second.replace_by(peer);
    }
    known->second.is_reachable = true;
    wake(known->second);
    return known->second;
}

void PeerIncarnations::load(const ConnectionInfo& peer) { learn(peer).is_loaded = true; }

Status PeerIncarnations::accept_hello(const ConnectionInfo& peer) {
    const auto known = known_.find(peer.id.name);
    if (known != known_.end() && std::ranges::find(known->second.displaced, peer.id.incarnation) !=
                                     known->second.displaced.end())
        return Status::aborted(concat("this incarnation of session \"", peer.id.name,
                                      "\" was displaced: a later one of that name is known here"));
    learn(peer);
    return Status::ok();
}

void PeerIncarnations::wake(const std::string& name) {
    const auto known = known_.find(name);
    if (known != known_.end()) wake(known->second);
}

void PeerIncarnations::wake(Known& known) { at_rest_.erase(std::exchange(known.rest, 0)); }

std::optional<std::string> PeerIncarnations::rest(const std::string& name) {
    const auto known = known_.find(name);
    if (known == known_.end()) return std::nullopt;
    wake(known->second);
    if (!known->second.is_loaded) {
        ConnectionInfo who;
        who.id = known->second.meant.id;
        who.process = known->second.meant.process;
        known->second.meant = std::move(who);
        known->second.is_reachable = false;
    }
    known->second.rest = ++rests_;
    at_rest_.emplace(rests_, name);
    if (at_rest_.size() <= kMostAtRest) return std::nullopt;
    std::string forgotten = std::move(at_rest_.begin()->second);
    at_rest_.erase(at_rest_.begin());
    known_.erase(forgotten);
    return forgotten;
}

const ConnectionInfo* PeerIncarnations::find(const std::string& name) const {
    const auto known = known_.find(name);
    return known == known_.end() ? nullptr : &known->second.meant;
}

bool PeerIncarnations::cannot_be_called(const std::string& name) const {
    const auto known = known_.find(name);
    return known != known_.end() && !known->second.is_reachable;
}

}  // namespace pccl::p2p
