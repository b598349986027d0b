// Whom an operation waits for.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text.h"

namespace pccl::comm {

struct Awaited {
    Rank rank = kNoRank;  // kNoRank: any rank
    bool is_sender = true;
};

using AwaitedRanks = std::vector<Awaited>;

/// "rank 2 (to send), rank 3 (to receive)", "nobody".
[[nodiscard]] inline std::string to_string(const AwaitedRanks& ranks) {
    std::string text;
    for (const Awaited& awaited : ranks) {
        const std::string name =
            awaited.rank == kNoRank ? "any rank" : concat("rank ", awaited.rank);
        text += concat(text.empty() ? "" : ", ", name,
                       awaited.is_sender ? " (to send)" : " (to receive)");
    }
    return text.empty() ? "nobody" : text;
}

}  // namespace pccl::comm
