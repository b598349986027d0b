#include "csrc/p2p/lives.h"

#include <algorithm>

#include "csrc/base/text.h"

namespace pccl::p2p {

void Lives::Known::replace_by(const ConnectionInfo& peer) {
    std::erase(displaced, peer.id.incarnation);
    if (meant.id != peer.id) displaced.push_back(meant.id.incarnation);
    if (displaced.size() > kMostDisplaced) displaced.pop_front();
    meant = peer;
}

void Lives::load(const ConnectionInfo& peer) {
    const auto [known, is_new] = known_.try_emplace(peer.id.name, peer);
    if (!is_new) known->second.replace_by(peer);
}

Status Lives::greet(const ConnectionInfo& peer) {
    const auto known = known_.find(peer.id.name);
    if (known != known_.end() && std::ranges::find(known->second.displaced, peer.id.incarnation) !=
                                     known->second.displaced.end())
        return Status::aborted(concat("this life of session \"", peer.id.name,
                                      "\" was displaced: a later one of that name is known here"));
    load(peer);
    return Status::ok();
}

const ConnectionInfo* Lives::find(const std::string& name) const {
    const auto known = known_.find(name);
    return known == known_.end() ? nullptr : &known->second.meant;
}

}  // namespace pccl::p2p
