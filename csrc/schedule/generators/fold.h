// SPDX-License-Identifier: Apache-2.0

// Any number of ranks for algorithms that require a power of two.
//
// With h the largest power of two <= n and x = n - h, the first 2x ranks form pairs: the even rank
// hands its data to the odd one, sits out, and gets the result back at the end. The remaining h
// ranks have positions 0..h-1; the blocks of neighbouring positions stay neighbours (Thakur,
// Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH", 2005).
#pragma once

#include <algorithm>

#include "csrc/schedule/generators/builder.h"
#include "csrc/schedule/generators/sizes.h"

namespace pccl::schedule {

class Fold {
   public:
    explicit Fold(const Member& me)
        : rank_(me.rank), positions_(floor_power(me.n())), pairs_(me.n() - positions_) {}

    [[nodiscard]] int positions() const { return positions_; }
    [[nodiscard]] bool sits_out() const { return in_pair() && rank_ % 2 == 0; }
    /// Returns whether this rank also works for the rank before it.
    [[nodiscard]] bool stands_for_two() const { return in_pair() && rank_ % 2 == 1; }
    /// Returns the position of a rank that does not sit out.
    [[nodiscard]] int position() const { return in_pair() ? rank_ / 2 : rank_ - pairs_; }
    [[nodiscard]] Rank rank_at(int position) const {
        return position < pairs_ ? 2 * position + 1 : position + pairs_;
    }
    /// Returns the number of blocks of positions [0, position); they are blocks [0,
    /// first_block(position)).
    [[nodiscard]] int first_block(int position) const {
        return position < pairs_ ? 2 * position : position + pairs_;
    }

   private:
    [[nodiscard]] bool in_pair() const { return rank_ < 2 * pairs_; }

    Rank rank_;
    int positions_;
    int pairs_;
};

/// Returns the all_reduce program of a rank that sits out.
[[nodiscard]] inline Program hand_vector_over(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    lane.send(me.block(Buffer::kInput, 0), me.rank + 1);
    lane.recv(me.rank + 1, me.block(Buffer::kOutput, 0));
    return program;
}

/// Returns the rounds of doubling with folds. A rank that sits out needs the rounds in which data
/// crosses all distances between two ranks that stand for two (positions 0 to pairs-1), plus two.
/// The other ranks need one round more than without folds, for the data of a rank that sits out.
[[nodiscard]] inline int doubling_rounds(const Sizes& of) {
    if (of.pairs == 0) return of.log;
    return std::max(of.log + 1, ceil_log2(of.pairs) + 2);
}

/// Returns the blocks in all ranges, of 1, 2, 4, ... positions, for which the rank in position 0 is
/// responsible during the rounds. If any rank stands for two, it and its neighbours do.
[[nodiscard]] inline double kept_by_first_pair(const Sizes& of) {
    double blocks = 0;
    for (int positions = 1; positions < of.power; positions *= 2)
        blocks += positions + std::min(of.pairs, positions);
    return blocks;
}

}  // namespace pccl::schedule
