// SPDX-License-Identifier: Apache-2.0

// Recursive halving: in each round, two ranks divide their common range between them.
//
// Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", Int.
// J. High Performance Computing Applications 19, 2005; all_reduce: Rabenseifner, "Optimization of
// collective reduction operations", ICCS 2004. Let h be the largest power of two <= n.
//
// reduce_scatter: log2 h rounds; a rank sends and reduces n-1 blocks in all. If n > h, there are up
// to two more rounds (see fold.h), a rank that sits out sends n blocks, and a rank that stands for
// two reduces n more. Partial sums lie in scratch.
//
// all_reduce: halving, then the same exchanges in reverse (doubling). It takes 2 log2 h rounds; a
// rank sends 2(h-1)/h of the vector and reduces (h-1)/h of it. If n > h, two more rounds and a
// whole vector are added. Partial sums lie in the output. Long messages go to near partners, at
// distances 1, 2, 4 and so on, and short ones to far partners. This is possible because all_reduce
// may assign any part of the vector to a rank, while the blocks of reduce_scatter have owners.

#include <algorithm>

#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/generators/fold.h"
#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {
namespace {

/// Positions [first, first + count).
struct PositionRange {
    int first = 0;
    int count = 0;
};

/// Halves of a range: the half that a rank keeps, and the half that it gives away.
struct Halves {
    PositionRange kept;
    PositionRange given;
};

Halves cut(PositionRange whole, bool keeps_high) {
    const int half = whole.count / 2;
    const PositionRange low{whole.first, half};
    const PositionRange high{whole.first + half, half};
    return keeps_high ? Halves{high, low} : Halves{low, high};
}

Program recursive_halving_all_reduce(const Member& me) {
    const Fold fold(me);
    if (fold.sits_out()) return hand_vector_over(me);
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    const Slice output = me.block(Buffer::kOutput, 0);
    const auto chunks_of = [&](Buffer buffer, PositionRange range) {
        const int size = me.chunks() / fold.positions();
        return Slice{buffer, range.first * size, range.count * size};
    };
    Buffer sums = Buffer::kInput;
    if (fold.stands_for_two()) {
        lane.recv_reduce(me.rank - 1, input, output);
        sums = Buffer::kOutput;
    }
    PositionRange range{0, fold.positions()};
    int distance = 1;
    for (; distance < fold.positions(); distance *= 2) {
        const auto [kept, given] = cut(range, (fold.position() & distance) != 0);
        const Rank partner = fold.rank_at(fold.position() ^ distance);
        lane.send(chunks_of(sums, given), partner);
        const Slice own = sums == Buffer::kInput ? chunks_of(sums, kept) : Slice{};
        lane.recv_reduce(partner, own, chunks_of(Buffer::kOutput, kept));
        sums = Buffer::kOutput;
        range = kept;
    }
    while (distance > 1) {
        distance /= 2;
        const Rank partner = fold.rank_at(fold.position() ^ distance);
        const PositionRange theirs{range.first ^ range.count, range.count};
        lane.send(chunks_of(Buffer::kOutput, range), partner);
        lane.recv(partner, chunks_of(Buffer::kOutput, theirs));
        range = {std::min(range.first, theirs.first), 2 * range.count};
    }
    if (fold.stands_for_two()) lane.send(output, me.rank - 1);
    return program;
}

Program recursive_halving_reduce_scatter(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Fold fold(me);
    const Slice output = me.block(Buffer::kOutput, 0);
    if (fold.sits_out()) {
        lane.send(me.block(Buffer::kInput, 0, me.n()), me.rank + 1);
        lane.recv(me.rank + 1, output);
        return program;
    }
    Buffer sums = Buffer::kInput;
    int scratch_from = 0;  // first block in scratch
    const auto blocks_of = [&](Buffer buffer, PositionRange range) {
        const int first = fold.first_block(range.first);
        const int count = fold.first_block(range.first + range.count) - first;
        return me.block(buffer, first - (buffer == Buffer::kScratch ? scratch_from : 0), count);
    };
    if (fold.stands_for_two()) {
        lane.recv_reduce(me.rank - 1, me.block(Buffer::kInput, 0, me.n()),
                         add_scratch_blocks(program, me, me.n()));
        sums = Buffer::kScratch;
    }
    PositionRange range{0, fold.positions()};
    while (range.count > 1) {
        const bool is_in_high = fold.position() >= range.first + range.count / 2;
        const auto [kept, given] = cut(range, is_in_high);
        const Rank partner = fold.rank_at(fold.position() ^ kept.count);
        lane.send(blocks_of(sums, given), partner);
        const Slice own = blocks_of(sums, kept);
        if (kept.count == 1 && !fold.stands_for_two()) {
            lane.recv_reduce(partner, own, output);
        } else if (sums == Buffer::kInput) {
            scratch_from = fold.first_block(kept.first);
            const int blocks = own.count / me.chunks();
            lane.recv_reduce(partner, own, add_scratch_blocks(program, me, blocks));
            sums = Buffer::kScratch;
        } else {
            lane.recv_accumulate(partner, own);
        }
        range = kept;
    }
    if (fold.stands_for_two()) {
        lane.send(me.block(Buffer::kScratch, me.rank - 1), me.rank - 1);
        lane.copy(me.block(Buffer::kScratch, me.rank), output);
    }
    return program;
}

BlockCost cost_of_recursive_halving(const Sizes& of) {
    if (of.kind == CollectiveKind::kAllReduce) {
        const double parts = 1.0 - 1.0 / of.power;
        return {2 * (of.log + of.folds), 2 * of.log + of.folds, 2 * parts + of.folds,
                parts + of.folds};
    }
    const double blocks = kept_by_first_pair(of) + of.folds * of.n;
    return {doubling_rounds(of), of.log + of.folds, blocks, blocks};
}

ScheduleSource recursive_halving_source(CollectiveKind kind, Program (*make)(const Member&)) {
    const bool is_vector = kind == CollectiveKind::kAllReduce;
    ScheduleSource made =
        generated("recursive_halving", {kind, make, cost_of_recursive_halving}, is_vector ? 2 : 1);
    made.longest_message = halves_or_all;
    made.takes_uneven = has_known_blocks(kind);
    if (is_vector) made.granularity = floor_power;
    return made;
}

}  // namespace

std::vector<ScheduleSource> recursive_halving() {
    return {
        recursive_halving_source(CollectiveKind::kAllReduce, recursive_halving_all_reduce),
        recursive_halving_source(CollectiveKind::kReduceScatter, recursive_halving_reduce_scatter)};
}

}  // namespace pccl::schedule
