// SPDX-License-Identifier: Apache-2.0

// Names and lists in messages: of ranks, peers and other items.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <pccl/types.h>
#include "csrc/base/text/text.h"

namespace pccl {

/// Returns "rank 3"; "the peer" where processes have no ranks (sessions of p2p).
inline std::string peer_name(Rank rank) {
    return rank == kNoRank ? std::string("the peer") : concat("rank ", rank);
}

/// Returns "a, b and 7 more": at most `most` items, each as text_of() formats it.
template <typename Items, typename TextOf>
[[nodiscard]] std::string some_of(const Items& items, std::size_t most, const TextOf& text_of) {
    const std::size_t shown = std::min(items.size(), most);
    std::string text;
    for (std::size_t i = 0; i < shown; ++i) text += concat(i == 0 ? "" : ", ", text_of(items[i]));
    if (items.size() > shown) text += concat(" and ", items.size() - shown, " more");
    return text;
}

/// Returns "rank 1" or "ranks 1, 3 and 7 more"; "nobody" for none.
[[nodiscard]] inline std::string listed(const std::vector<Rank>& ranks) {
    constexpr std::size_t kShown = 8;
    if (ranks.empty()) return "nobody";
    return concat(ranks.size() == 1 ? "rank " : "ranks ",
                  some_of(ranks, kShown, [](Rank rank) { return rank; }));
}

}  // namespace pccl
