// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/membership/quorum.h"

#include <algorithm>
#include <string>
#include <vector>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::comm {

Status check_quorum(int size, std::span<const Rank> staying, std::optional<int> least) {
    const int left = static_cast<int>(staying.size());
    if (least && (*least < 1 || *least > size))
        return Status::invalid_argument(concat("least=", *least, " of a group of ", size));
    const bool has_first = left > 0 && staying.front() == 0;
    const bool is_enough = least ? left >= *least : 2 * left + (has_first ? 1 : 0) > size;
    if (is_enough) return Status::ok();
    std::vector<Rank> missing;
    for (Rank rank = 0; rank < size; ++rank)
        if (!std::ranges::binary_search(staying, rank)) missing.push_back(rank);
    const std::string why = least ? concat("at least ", *least, " are required")
                            : 2 * left < size
                                ? "fewer than half of them: the others may go on"
                                : "half of them, without rank 0: the others may go on";
    return Status(StatusCode::kUnavailable,
                  concat(left, " of ", size, " ranks would be left, ", why, "; ", listed(missing),
                         missing.size() == 1 ? " is" : " are", " missing",
                         least ? "" : concat("; least=", left, " goes on all the same")),
                  missing.front());
}

}  // namespace pccl::comm
