// SPDX-License-Identifier: Apache-2.0

// Ranks that an operation waits for.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl {

struct Awaited {
    enum class Act { kSend, kReceive, kJoin };

    Rank rank = kNoRank;   // kNoRank: any rank
    Act act = Act::kSend;  // the awaited action of that rank
    bool operator==(const Awaited&) const = default;
};

using AwaitedRanks = std::vector<Awaited>;

[[nodiscard]] constexpr std::string_view to_string(Awaited::Act act) {
    if (act == Awaited::Act::kJoin) return " (to join)";
    return act == Awaited::Act::kSend ? " (to send)" : " (to receive)";
}

/// Returns "rank 2 (to send), rank 3 (to receive)", or "nobody".
[[nodiscard]] inline std::string to_string(const AwaitedRanks& ranks) {
    std::string text;
    for (const Awaited& awaited : ranks) {
        const std::string name =
            awaited.rank == kNoRank ? "any rank" : concat("rank ", awaited.rank);
        text += concat(text.empty() ? "" : ", ", name, to_string(awaited.act));
    }
    return text.empty() ? "nobody" : text;
}

}  // namespace pccl
