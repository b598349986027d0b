// SPDX-License-Identifier: Apache-2.0

// Bruck: ceil(log2 n) rounds for any n, with messages that grow or travel more than once.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE Trans. Parallel and Distributed Systems 8, 1997.
//
// all_gather: in round i a rank sends at most 2^i blocks that it has to the rank 2^i before it. It
// sends n-1 blocks, the least possible, in one message per round, and each block goes to its final
// place at once.
//
// all_to_all: a block that must travel j places uses the powers of two that make up j, and stays in
// scratch until the last. A rank sends at most n/2 blocks per round, n/2 log2 n in all, gathered
// into one message per round: this suits small blocks only.
#include <algorithm>
#include <vector>

#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {
namespace {

/// Returns blocks [first, first + count) of a ring of n blocks in output: two slices if they wrap
/// around.
Slices around(const Member& me, int first, int count) {
    const int before_wrap = std::min(count, me.n() - first);
    return {me.block(Buffer::kOutput, first, before_wrap),
            me.block(Buffer::kOutput, 0, count - before_wrap)};
}

/// Returns the distances below n whose path contains `step`.
std::vector<int> moving_by(int step, int n) {
    std::vector<int> distances;
    for (int distance = step; distance < n; ++distance) {
        if ((distance & step) != 0) distances.push_back(distance);
    }
    return distances;
}

Program bruck_all_gather(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    for (int have = 1; have < me.n(); have *= 2) {
        const int count = std::min(have, me.n() - have);
        const Rank to = me.at(-have);
        const Rank from = me.at(have);
        lane.send(have == 1 ? Slices(input) : around(me, me.rank, count), to);
        if (have == 1) lane.copy(input, me.block(Buffer::kOutput, me.rank));
        lane.recv(from, around(me, from, count));
    }
    return program;
}

/// Current places of the blocks on a rank, by the distance that they travel in total.
class Homes {
   public:
    Homes(Program& program, const Member& me) : program_(program), me_(me) {
        for (int distance = 0; distance < me.n(); ++distance)
            homes_.push_back(me.block(Buffer::kInput, me.at(distance)));
    }

    [[nodiscard]] Slices of(const std::vector<int>& distances) const {
        Slices homes;
        for (const int distance : distances) homes.add(homes_[static_cast<std::size_t>(distance)]);
        return homes;
    }

    /// Records that the blocks of `distance` have made the steps up to `step`; the last step brings
    /// a block to its final place.
    void move(int distance, int step) {
        Slice& home = homes_[static_cast<std::size_t>(distance)];
        if (distance < 2 * step) {
            home = me_.block(Buffer::kOutput, me_.at(-distance));
        } else if (home.buffer == Buffer::kInput) {
            home = add_scratch_blocks(program_, me_, 1);
        }
    }

   private:
    Program& program_;
    const Member& me_;
    std::vector<Slice> homes_;  // by distance
};

Program bruck_all_to_all(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    Homes homes(program, me);
    for (int step = 1; step < me.n(); step *= 2) {
        const std::vector<int> moving = moving_by(step, me.n());
        lane.send(homes.of(moving), me.at(step));
        if (step == 1)
            lane.copy(me.block(Buffer::kInput, me.rank), me.block(Buffer::kOutput, me.rank));
        for (const int distance : moving) homes.move(distance, step);
        lane.recv(me.at(-step), homes.of(moving));
    }
    return program;
}

BlockCost cost_of_all_gather(const Sizes& of) {
    return {ceil_log2(of.n), ceil_log2(of.n), static_cast<double>(of.others()), 0};
}

BlockCost cost_of_all_to_all(const Sizes& of) {
    double moved = 0;
    for (int step = 1; step < of.n; step *= 2) {
        // distances below n with this bit set
        const int moving = of.n / (2 * step) * step + std::max(0, of.n % (2 * step) - step);
        moved += moving;
    }
    return {ceil_log2(of.n), ceil_log2(of.n), moved, 0};
}

ScheduleSource bruck_source(const Generator& generator) {
    ScheduleSource made = generated("bruck", generator, 2);
    made.longest_message =
        generator.kind == CollectiveKind::kAllGather ? doubled_blocks : half_of_blocks;
    made.takes_uneven = has_known_blocks(generator.kind);
    made.symmetry = seen_from_each_rank(generator.kind);
    return made;
}

}  // namespace

std::vector<ScheduleSource> bruck() {
    return {bruck_source({CollectiveKind::kAllGather, bruck_all_gather, cost_of_all_gather}),
            bruck_source({CollectiveKind::kAllToAll, bruck_all_to_all, cost_of_all_to_all})};
}

}  // namespace pccl::schedule
