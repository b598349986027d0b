// SPDX-License-Identifier: Apache-2.0

// Binomial trees: the number of ranks that have the data doubles with every round.
//
// All take at most ceil(log2 n) rounds, for any n. Counted from the root, rank v's parent is v
// without its lowest set bit, and its subtree is the ranks from v up to that bit away.
//
// broadcast: the root sends the vector ceil(log2 n) times, one message per chunk. reduce: every
// other rank sends it once, and the root reduces it ceil(log2 n) times. gather and scatter: n-1
// blocks pass the root in ceil(log2 n) messages, a subtree's blocks together; other ranks hold
// their subtree's blocks in scratch.
//
// (Thakur, Rabenseifner, Gropp, "Optimization of collective communication operations in MPICH",
// Int. J. High Performance Computing Applications 19, 2005.)
#include <algorithm>
#include <ranges>

#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/generators/tree.h"

namespace pccl::schedule {
namespace {

/// Positions [first, first + count) after the root.
struct PositionSpan {
    int first = 0;
    int count = 0;
};

int parent_of(int position) { return position & (position - 1); }

/// Returns the position below which all children of `position` lie.
int reach(const Member& me, int position) {
    return position == 0 ? me.n() : std::min(me.n(), position + (position & -position));
}

PositionSpan subtree(const Member& me, int position) {
    return {position, reach(me, position) - position};
}

/// Returns the children, nearest first: the smallest subtree first.
std::vector<int> children_of(const Member& me, int position) {
    std::vector<int> children;
    for (int distance = 1; position + distance < reach(me, position); distance *= 2) {
        children.push_back(position + distance);
    }
    return children;
}

TreePlace place_in_tree(const Member& me) {
    TreePlace place;
    if (!me.is_root()) place.parent = me.of_position(parent_of(me.from_root()));
    for (const int child : children_of(me, me.from_root())) {
        place.children.push_back(me.of_position(child));
    }
    return place;
}

/// Returns a subtree's blocks in a buffer of the root, where they may wrap around. Other ranks
/// store blocks by position.
Slices at_root(const Member& me, Buffer buffer, PositionSpan span) {
    const int before_wrap = std::clamp(me.n() - me.shape.root - span.first, 0, span.count);
    return {me.block(buffer, me.of_position(span.first), before_wrap),
            me.block(buffer, me.of_position(span.first + before_wrap), span.count - before_wrap)};
}

/// Returns `span` within the scratch of this rank, which holds its subtree.
Slice in_scratch(const Member& me, PositionSpan span) {
    return me.block(Buffer::kScratch, span.first - me.from_root(), span.count);
}

Program binomial_broadcast(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const TreePlace place = place_in_tree(me);
    for (int chunk = 0; chunk < me.chunks(); ++chunk) {
        send_down(lane, place, one_chunk(Buffer::kInput, chunk), one_chunk(Buffer::kOutput, chunk));
    }
    if (me.is_root()) lane.copy(me.block(Buffer::kInput, 0), me.block(Buffer::kOutput, 0));
    return program;
}

Program binomial_reduce(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const TreePlace place = place_in_tree(me);
    for (int chunk = 0; chunk < me.chunks(); ++chunk) {
        const Slice output = one_chunk(Buffer::kOutput, chunk);
        const Slice sum = place.children.size() > 1 ? add_scratch_like(program, output) : Slice{};
        reduce_up(lane, place, one_chunk(Buffer::kInput, chunk), sum, output);
    }
    return program;
}

Program binomial_gather(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const int self = me.from_root();
    const Slice input = me.block(Buffer::kInput, 0);
    const std::vector<int> children = children_of(me, self);
    if (me.is_root()) {
        lane.copy(input, me.block(Buffer::kOutput, me.rank));
        for (const int child : children) {
            lane.recv(me.of_position(child), at_root(me, Buffer::kOutput, subtree(me, child)));
        }
        return program;
    }
    if (!children.empty()) {
        add_scratch_blocks(program, me, subtree(me, self).count);
        lane.copy(input, in_scratch(me, {self, 1}));
    }
    for (const int child : children) {
        lane.recv(me.of_position(child), in_scratch(me, subtree(me, child)));
    }
    lane.send(children.empty() ? input : in_scratch(me, subtree(me, self)),
              me.of_position(parent_of(self)));
    return program;
}

Program binomial_scatter(const Member& me) {
    Program program;
    LaneBuilder lane(program);
    const int self = me.from_root();
    const Slice output = me.block(Buffer::kOutput, 0);
    const std::vector<int> children = children_of(me, self);
    if (me.is_root()) {
        for (const int child : children | std::views::reverse) {
            lane.send(at_root(me, Buffer::kInput, subtree(me, child)), me.of_position(child));
        }
        lane.copy(me.block(Buffer::kInput, me.rank), output);
        return program;
    }
    if (!children.empty()) add_scratch_blocks(program, me, subtree(me, self).count);
    lane.recv(me.of_position(parent_of(self)),
              children.empty() ? output : in_scratch(me, subtree(me, self)));
    for (const int child : children | std::views::reverse) {
        lane.send(in_scratch(me, subtree(me, child)), me.of_position(child));
    }
    if (!children.empty()) lane.copy(in_scratch(me, {self, 1}), output);
    return program;
}

BlockCost cost_of_binomial(const Sizes& of) {
    const int children = ceil_log2(of.n);  // of the root
    if (has_one_block(of.kind))
        return {of.log, static_cast<long long>(children) * of.chunks, 1.0 * children,
                of.if_reduced(1.0 * children)};
    return {of.log, children, static_cast<double>(of.others()), 0};
}

ScheduleSource binomial_source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made =
        generated("binomial", {kind, make, cost_of_binomial}, has_one_block(kind) ? 1 : 2);
    if (!has_one_block(kind)) made.longest_message = doubled_blocks;  // of subtrees
    return made;
}

}  // namespace

std::vector<ScheduleSource> binomial() {
    return {binomial_source(CollectiveKind::kBroadcast, binomial_broadcast),
            binomial_source(CollectiveKind::kReduce, binomial_reduce),
            binomial_source(CollectiveKind::kGather, binomial_gather),
            binomial_source(CollectiveKind::kScatter, binomial_scatter)};
}

}  // namespace pccl::schedule
