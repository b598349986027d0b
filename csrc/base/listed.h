// Ranks in messages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text.h"

namespace pccl {

/// "rank 1" or "ranks 1, 3 and 7 more"; "nobody" for none.
[[nodiscard]] inline std::string listed(const std::vector<Rank>& ranks) {
    constexpr std::size_t kShown = 8;
    if (ranks.empty()) return "nobody";
    const std::size_t shown = std::min(ranks.size(), kShown);
    std::string text = concat(ranks.size() == 1 ? "rank " : "ranks ", ranks.front());
    for (std::size_t i = 1; i < shown; ++i) text += concat(", ", ranks[i]);
    if (ranks.size() > shown) text += concat(" and ", ranks.size() - shown, " more");
    return text;
}

}  // namespace pccl
