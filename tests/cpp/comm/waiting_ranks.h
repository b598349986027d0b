// SPDX-License-Identifier: Apache-2.0

// States of ranks that wait for others in a collective.
#pragma once

#include <utility>
#include <vector>

#include "csrc/comm/diagnosis/rank_status.h"
#include "tests/cpp/collective/collective_calls.h"

namespace pccl::comm {

inline RankStatus waiting_for(std::vector<Rank> ranks) {
    return {
        .sequence = kInquestSequence, .operation = "all_reduce #7", .awaited = std::move(ranks)};
}

}  // namespace pccl::comm
