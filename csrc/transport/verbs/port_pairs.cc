// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/verbs/port_pairs.h"

#include <algorithm>

namespace pccl::transport::verbs {

using sys::verbs::RawGid;

bool shares_subnet(const RawGid& gid, const SubnetGid& of) {
    if (of.subnet_bits == 0) return false;
    const auto whole = static_cast<std::ptrdiff_t>(of.subnet_bits / 8);
    if (!std::equal(gid.begin(), gid.begin() + whole, of.gid.begin())) return false;
    const int rest = of.subnet_bits % 8;
    const auto last = static_cast<std::size_t>(whole);
    return rest == 0 || (gid[last] ^ of.gid[last]) >> (8 - rest) == 0;
}

std::vector<LanePair> pair_lanes(std::span<const SubnetGid> here, std::span<const RawGid> peer) {
    std::vector<LanePair> pairs;
    std::vector<bool> is_taken(here.size());
    std::vector<std::size_t> left;  // of the peer
    for (std::size_t j = 0; j < peer.size(); ++j) {
        std::size_t i = 0;
        while (i < here.size() && (is_taken[i] || !shares_subnet(peer[j], here[i]))) ++i;
        if (i < here.size()) {
            is_taken[i] = true;
            pairs.push_back({.here = i, .peer = j});
        } else {
            left.push_back(j);
        }
    }
    const bool by_subnet = !pairs.empty();
    std::size_t next = 0;
    for (const std::size_t j : left) {
        const auto has_it = [&](const SubnetGid& own) { return shares_subnet(peer[j], own); };
        if (by_subnet && std::ranges::any_of(here, has_it)) continue;
        while (next < here.size() && (is_taken[next] || (by_subnet && here[next].subnet_bits > 0)))
            ++next;
        if (next == here.size()) break;
        pairs.push_back({.here = next++, .peer = j});
    }
    std::ranges::sort(pairs, {}, &LanePair::peer);
    return pairs;
}

}  // namespace pccl::transport::verbs
