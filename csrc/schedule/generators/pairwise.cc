// SPDX-License-Identifier: Apache-2.0

// Pairwise all_to_all: n-1 rounds; round i exchanges with the ranks i places away on either side.
//
// A rank sends n-1 blocks. At any time it sends to one rank and receives from one, which keeps
// large messages from colliding (Thakur, Rabenseifner, Gropp, "Optimization of collective
// communication operations in MPICH", Int. J. High Performance Computing Applications 19, 2005).
#include "csrc/schedule/generators/family.h"

namespace pccl::schedule {
namespace {

Program pairwise_all_to_all(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    for (int round = 1; round < me.n(); ++round) {
        const Rank to = me.at(round);
        const Rank from = me.at(-round);
        lane.send(me.block(Buffer::kInput, to), to);
        if (round == 1) {
            lane.copy(me.block(Buffer::kInput, me.rank), me.block(Buffer::kOutput, me.rank));
        }
        lane.recv(from, me.block(Buffer::kOutput, from));
    }
    return program;
}

BlockCost cost_of_pairwise(const Sizes& of) {
    return {of.n - 1, of.others(), static_cast<double>(of.others()), 0};
}

}  // namespace

std::vector<ScheduleSource> pairwise() {
    ScheduleSource made =
        generated("pairwise", {CollectiveKind::kAllToAll, pairwise_all_to_all, cost_of_pairwise});
    made.longest_message = one_block;
    made.symmetry = seen_from_each_rank(made.kind);
    made.takes_uneven = true;  // each block goes directly to its place
    return {made};
}

}  // namespace pccl::schedule
