// SPDX-License-Identifier: Apache-2.0

// Two binary trees, each for half of the chunks; no rank is an inner node of both.
//
// Sanders, Speck, Traeff, "Two-tree algorithms for full bandwidth broadcast, reduction and scan",
// Parallel Computing 35, 2009. A leaf of one tree is an inner node of the other, so every rank
// sends, receives and reduces about one vector, as in a chain, but over a depth of log2 n.
// broadcast and reduce take 1 + floor(log2(n-1)) rounds for the first chunk, all_reduce (up, then
// down) 2 floor(log2 n), in which a rank sends and receives two vectors at most and reduces one.
//
// The first tree is the in-order binary tree over labels 1..m: label x with lowest set bit b has
// its children in (x-b, x) and (x, x+b), and odd labels are leaves. The second tree gives every
// member a label of the other parity: the mirror image m+1-x if m is even, the next label
// (cyclically) if m is odd. all_reduce labels all ranks; broadcast and reduce label all ranks
// except the root, which is the parent of both trees.
//
// Each tree has one lane up and one down; the channel is the tree.
#include <algorithm>

#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/generators/tree.h"

namespace pccl::schedule {
namespace {

constexpr int kTrees = 2;

int lowest_bit(int x) { return x & -x; }

/// Returns the label of the parent; 0 for the top.
int parent_label(int label, int labels) {
    const int bit = lowest_bit(label);
    const bool is_left_child = (label & (2 * bit)) == 0 && label + bit <= labels;
    return is_left_child ? label + bit : label - bit;
}

std::vector<int> child_labels(int label, int labels) {
    const int half = lowest_bit(label) / 2;
    std::vector<int> children;
    if (half > 0) children.push_back(label - half);
    if (half > 0 && label < labels) {
        const int behind = std::min(labels - label, 2 * half - 1);
        children.push_back(label + floor_power(behind));
    }
    return children;
}

/// Maps a member's label in the first tree to its label in the second, or back.
int to_other_tree(int label, int labels, int step) {
    if (labels % 2 == 0) return labels + 1 - label;
    return (label - 1 + step + labels) % labels + 1;
}

/// Tree over `labels` members that start at the `first_position`-th rank after the root.
struct MemberTree {
    int index = 0;
    int labels = 0;
    int first_position = 0;

    [[nodiscard]] int label_of(const Member& me) const {
        const int label = me.from_root() - first_position + 1;
        return index == 0 ? label : to_other_tree(label, labels, 1);
    }
    [[nodiscard]] Rank rank_of(const Member& me, int label) const {
        const int first_tree_label = index == 0 ? label : to_other_tree(label, labels, -1);
        return me.of_position(first_tree_label - 1 + first_position);
    }
};

TreePlace place_in_double_tree(const Member& me, const MemberTree& tree) {
    if (me.from_root() < tree.first_position) {
        return {.parent = kNoRank, .children = {tree.rank_of(me, floor_power(tree.labels))}};
    }
    const int label = tree.label_of(me);
    const int parent = parent_label(label, tree.labels);
    TreePlace place;
    if (parent != 0) {
        place.parent = tree.rank_of(me, parent);
    } else if (tree.first_position > 0) {
        place.parent = me.shape.root;
    }
    for (const int child : child_labels(label, tree.labels)) {
        place.children.push_back(tree.rank_of(me, child));
    }
    return place;
}

Program double_tree_broadcast(const Member& me) {
    Program program;
    for (int tree = 0; tree < kTrees; ++tree) {
        const TreePlace place =
            place_in_double_tree(me, {.index = tree, .labels = me.n() - 1, .first_position = 1});
        LaneBuilder lane(program, tree);
        for (int chunk = tree; chunk < me.chunks(); chunk += kTrees) {
            const Slice input = one_chunk(Buffer::kInput, chunk);
            const Slice output = one_chunk(Buffer::kOutput, chunk);
            send_down(lane, place, input, output);
            if (me.is_root()) lane.copy(input, output);
        }
    }
    return program;
}

Program double_tree_reduce(const Member& me) {
    Program program;
    for (int tree = 0; tree < kTrees; ++tree) {
        const TreePlace place =
            place_in_double_tree(me, {.index = tree, .labels = me.n() - 1, .first_position = 1});
        LaneBuilder lane(program, tree);
        for (int chunk = tree; chunk < me.chunks(); chunk += kTrees) {
            const Slice output = one_chunk(Buffer::kOutput, chunk);
            const Slice sum =
                place.children.size() > 1 ? add_scratch_like(program, output) : Slice{};
            reduce_up(lane, place, one_chunk(Buffer::kInput, chunk), sum, output);
        }
    }
    return program;
}

Program double_tree_all_reduce(const Member& me) {
    Program program;
    for (int tree = 0; tree < kTrees; ++tree) {
        const TreePlace place =
            place_in_double_tree(me, {.index = tree, .labels = me.n(), .first_position = 0});
        LaneBuilder up(program, tree);
        LaneBuilder down(program, tree);
        for (int chunk = tree; chunk < me.chunks(); chunk += kTrees) {
            const Slice output = one_chunk(Buffer::kOutput, chunk);
            const Dependency reduced =
                reduce_up(up, place, one_chunk(Buffer::kInput, chunk), output, output);
            if (place.is_top()) down.wait_for(reduced);
            send_down(down, place, output, output);
        }
    }
    return program;
}

/// Returns the cost. Rooted collectives: an inner node of a tree exchanges half of the chunks with
/// each of two children, and the root handles all chunks once. all_reduce: up and down, plus a
/// leaf's share in the other tree. With two or three ranks no rank has both a parent and two
/// children.
BlockCost cost_of_double_tree(const Sizes& of) {
    if (of.kind != CollectiveKind::kAllReduce)
        return {1 + floor_log2(of.n - 1), of.chunks, 1.0, of.if_reduced(1.0)};
    const int halves = std::min(of.n, 4);
    return {2 * of.log, static_cast<long long>(halves) * of.chunks / 2, halves / 2.0,
            of.n == 2 ? 0.5 : 1.0};
}

ScheduleSource double_tree_source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made = generated("double_binary_tree", {kind, make, cost_of_double_tree});
    made.granularity = [](int ranks) { return ranks == 1 ? 1 : 2; };  // one per tree
    made.holds_calls_up = true;
    return made;
}

}  // namespace

std::vector<ScheduleSource> double_binary_tree() {
    return {double_tree_source(CollectiveKind::kAllReduce, double_tree_all_reduce),
            double_tree_source(CollectiveKind::kBroadcast, double_tree_broadcast),
            double_tree_source(CollectiveKind::kReduce, double_tree_reduce)};
}

}  // namespace pccl::schedule
