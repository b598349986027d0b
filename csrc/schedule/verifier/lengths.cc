// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/lengths.h"

#include <algorithm>
#include <iterator>

#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {

bool finds_lengths(const EventGraph& graph, const Holdings& holdings) {
    const Schedule& schedule = graph.schedule();
    if (holdings.moved.empty()) return false;
    auto moved = holdings.moved.begin();
    for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
        const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
        for (const auto& lane : moved_blocks(program, schedule.shape, rank))
            for (const MovedBlocks& found : lane) {
                if (!std::equal(found.begin(), found.end(), moved)) return false;
                std::advance(moved, found.size());
            }
    }
    return true;
}

}  // namespace pccl::schedule
