// Bruck: ceil(log2 n) rounds for any n, with messages that grow or travel more than once.
//
// Bruck, Ho, Kipnis, Upfal, Weathersby, "Efficient algorithms for all-to-all communications in
// multiport message-passing systems", IEEE Trans. Parallel and Distributed Systems 8, 1997.
//
// all_gather: in round i a rank sends (at most) 2^i blocks that it has to the rank 2^i before it;
// n-1 blocks sent a rank, the least possible. Blocks go to their place at once, so a round is two
// messages where they wrap round the end of the buffer. One slot is enough even so: the receiver of
// two messages never sends two itself.
//
// all_to_all: a block that must travel j places does so in steps of the powers of two that make up
// j. At most n/2 blocks sent a rank and round, n/2 log2 n in all, packed into one message a round:
// for small blocks only.
#include <algorithm>
#include <vector>

#include "csrc/schedule/generators/family.h"

namespace pccl::schedule {
namespace {

/// Blocks [first, first + count) of a ring of n blocks, in output: two slices where they wrap
/// round.
std::vector<Slice> around(const Member& me, int first, int count) {
    const int before_wrap = me.n() - first;
    if (count <= before_wrap) return {me.block(Buffer::kOutput, first, count)};
    return {me.block(Buffer::kOutput, first, before_wrap),
            me.block(Buffer::kOutput, 0, count - before_wrap)};
}

/// The distances below n whose way contains `step`.
std::vector<int> moving_by(int step, int n) {
    std::vector<int> distances;
    for (int distance = step; distance < n; ++distance) {
        if ((distance & step) != 0) distances.push_back(distance);
    }
    return distances;
}

bool follow_each_other(const std::vector<Slice>& homes, const std::vector<int>& distances) {
    for (std::size_t i = 1; i < distances.size(); ++i) {
        const Slice& before = homes[static_cast<std::size_t>(distances[i - 1])];
        const Slice& next = homes[static_cast<std::size_t>(distances[i])];
        if (next.buffer != before.buffer || next.offset != before.offset + before.count)
            return false;
    }
    return true;
}

Program bruck_all_gather(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const Slice input = me.block(Buffer::kInput, 0);
    for (int have = 1; have < me.n(); have *= 2) {
        const int count = std::min(have, me.n() - have);
        const Rank to = me.at(-have);
        const Rank from = me.at(have);
        const std::vector<Slice> outgoing =
            have == 1 ? std::vector{input} : around(me, me.rank, count);
        for (const Slice& slice : outgoing) lane.send(slice, to);
        if (have == 1) lane.copy(input, me.block(Buffer::kOutput, me.rank));
        for (const Slice& slice : around(me, from, count)) lane.recv(from, slice);
    }
    return program;
}

Program bruck_all_to_all(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    // Where this rank holds the block that travels so far, by distance.
    std::vector<Slice> homes;
    homes.reserve(static_cast<std::size_t>(me.n()));
    for (int distance = 0; distance < me.n(); ++distance) {
        homes.push_back(me.block(Buffer::kInput, me.at(distance)));
    }
    const int most_moving = me.n() / 2;
    const Slice packed = most_moving > 1 ? add_scratch_blocks(program, me, most_moving) : Slice{};
    for (int step = 1; step < me.n(); step *= 2) {
        const std::vector<int> moving = moving_by(step, me.n());
        const int blocks = static_cast<int>(moving.size());
        const auto place = [&](Slice area, std::size_t i) {
            return Slice{area.buffer, area.offset + static_cast<int>(i) * me.chunks(), me.chunks()};
        };
        Slice outgoing = homes[static_cast<std::size_t>(moving.front())];
        if (!follow_each_other(homes, moving)) {
            outgoing = packed;
            for (std::size_t i = 0; i < moving.size(); ++i) {
                lane.copy(homes[static_cast<std::size_t>(moving[i])], place(packed, i));
            }
        }
        outgoing.count = blocks * me.chunks();
        lane.send(outgoing, me.at(step));
        if (step == 1) lane.copy(homes[0], me.block(Buffer::kOutput, me.rank));
        const Slice incoming = add_scratch_blocks(program, me, blocks);
        lane.recv(me.at(-step), incoming);
        for (std::size_t i = 0; i < moving.size(); ++i) {
            const int distance = moving[i];
            homes[static_cast<std::size_t>(distance)] = place(incoming, i);
            if (distance < 2 * step) {
                lane.copy(place(incoming, i), me.block(Buffer::kOutput, me.at(-distance)));
            }
        }
    }
    return program;
}

/// The last rank's blocks wrap round in every round in which it sends two and more.
BlockCost cost_of_all_gather(const Sizes& of) {
    long long messages = 0;
    for (int have = 1; have < of.n; have *= 2) messages += std::min(have, of.n - have) > 1 ? 2 : 1;
    return {ceil_log2(of.n), messages, static_cast<double>(of.others()), 0};
}

BlockCost cost_of_all_to_all(const Sizes& of) {
    double moved = 0;
    for (int step = 1; step < of.n; step *= 2) {
        // Distances below n with this bit set.
        const int moving = of.n / (2 * step) * step + std::max(0, of.n % (2 * step) - step);
        moved += moving;
    }
    return {ceil_log2(of.n), ceil_log2(of.n), moved, 0};
}

ScheduleSource source(const Generator& generator) {
    ScheduleSource made = generated("bruck", generator);
    made.longest_message = whole_buffer;
    return made;
}

}  // namespace

std::vector<ScheduleSource> bruck() {
    return {source({CollectiveKind::kAllGather, bruck_all_gather, cost_of_all_gather}),
            source({CollectiveKind::kAllToAll, bruck_all_to_all, cost_of_all_to_all})};
}

}  // namespace pccl::schedule
