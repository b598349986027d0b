// SPDX-License-Identifier: Apache-2.0

// Recursive doubling: in round i, ranks at distance 2^i exchange all their data.
//
// Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", Int.
// J. High Performance Computing Applications 19, 2005. With h the largest power of two <= n, it
// takes log2 h rounds, and up to two more if n > h (see fold.h).
//
// all_reduce: a rank sends and reduces the whole vector log2 h times, once more if it stands for
// two. Both sides of an exchange add the same two sums, so every rank gets the same bits.
//
// all_gather: the data of a rank doubles with every round, n-1 blocks sent in all for a power of
// two. If n > h, a rank that stands for two sends another n-1 blocks at the end: Bruck is better.
#include <algorithm>

#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/generators/fold.h"
#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {
namespace {

Program recursive_doubling_all_reduce(const Member& me) {
    const Fold fold(me);
    if (fold.sits_out()) return hand_vector_over(me);
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    const Slice output = me.block(Buffer::kOutput, 0);
    const auto partner = [&](int distance) { return fold.rank_at(fold.position() ^ distance); };
    Slice own = input;  // operand of the next incoming vector; empty: the output
    if (fold.stands_for_two()) {
        lane.recv_reduce_copy_send(me.rank - 1, input, output, partner(1));
        own = {};
    } else {
        lane.send(input, partner(1));
    }
    for (int distance = 1; distance < fold.positions(); distance *= 2) {
        if (2 * distance < fold.positions()) {
            lane.recv_reduce_copy_send(partner(distance), own, output, partner(2 * distance));
        } else if (fold.stands_for_two()) {
            lane.recv_reduce_copy_send(partner(distance), own, output, me.rank - 1);
        } else {
            lane.recv_reduce(partner(distance), own, output);
        }
        own = {};
    }
    return program;
}

Program fold_into_next_rank(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    const int behind = me.n() - 1 - me.rank;
    lane.send(input, me.rank + 1);
    lane.copy(input, me.block(Buffer::kOutput, me.rank));
    if (me.rank > 0) lane.recv(me.rank + 1, me.block(Buffer::kOutput, 0, me.rank));
    lane.recv(me.rank + 1, me.block(Buffer::kOutput, me.rank + 1, behind));
    return program;
}

Program recursive_doubling_all_gather(const Member& me) {
    const Fold fold(me);
    if (fold.sits_out()) return fold_into_next_rank(me);

    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    const Slice own = me.block(Buffer::kOutput, me.rank);
    const auto blocks_of = [&](int first_position, int positions) {
        const int first = fold.first_block(first_position);
        return me.block(Buffer::kOutput, first,
                        fold.first_block(first_position + positions) - first);
    };
    if (fold.stands_for_two()) {
        lane.copy(input, own);
        lane.recv(me.rank - 1, me.block(Buffer::kOutput, me.rank - 1));
    }
    for (int distance = 1; distance < fold.positions(); distance *= 2) {
        const int mine = fold.position() & -distance;
        const int theirs = mine ^ distance;
        const Rank partner = fold.rank_at(fold.position() ^ distance);
        const bool only_own = distance == 1 && !fold.stands_for_two();
        lane.send(only_own ? input : blocks_of(mine, distance), partner);
        if (only_own) lane.copy(input, own);
        lane.recv(partner, blocks_of(theirs, distance));
    }
    if (fold.stands_for_two()) {
        const Rank folded = me.rank - 1;
        if (folded > 0) lane.send(me.block(Buffer::kOutput, 0, folded), folded);
        lane.send(me.block(Buffer::kOutput, me.rank, me.n() - me.rank), folded);
    }
    return program;
}

BlockCost cost_of_recursive_doubling(const Sizes& of) {
    if (of.kind == CollectiveKind::kAllReduce) {
        const int vectors = of.log + of.folds;
        return {doubling_rounds(of), vectors, 1.0 * vectors, 1.0 * vectors};
    }
    // The rank that folded into the other rank of the first pair gets all blocks except its own
    // from it, in two messages unless its block is the first.
    return {doubling_rounds(of), of.log + std::min(of.pairs, 2),
            kept_by_first_pair(of) + static_cast<double>(of.folds * of.others()), 0};
}

/// Returns the longest message: a rank that stands for two hands over all blocks of the other
/// ranks.
int longest_of_all_gather(const Shape& shape) {
    const int longest = halves_or_all(shape);
    return longest < whole_buffer(shape) ? longest : shape.chunks * std::max(1, shape.ranks - 1);
}

ScheduleSource recursive_doubling_source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made = generated("recursive_doubling", {kind, make, cost_of_recursive_doubling});
    made.swaps_operands = kind == CollectiveKind::kAllReduce;
    made.longest_message =
        kind == CollectiveKind::kAllReduce ? whole_buffer : longest_of_all_gather;
    made.takes_uneven = has_known_blocks(kind);
    return made;
}

}  // namespace

std::vector<ScheduleSource> recursive_doubling() {
    return {recursive_doubling_source(CollectiveKind::kAllReduce, recursive_doubling_all_reduce),
            recursive_doubling_source(CollectiveKind::kAllGather, recursive_doubling_all_gather)};
}

}  // namespace pccl::schedule
