// SPDX-License-Identifier: Apache-2.0

// PAT, parallel aggregated trees: every block uses a binomial tree of its own, so that few blocks
// travel far and many go to neighbours.
//
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// arXiv:2506.20252, 2025. Relative to the rank that holds it, the block of rank (rank + s) mod n is
// block s.
//
// all_gather: block s comes from the rank at distance 2^d = the lowest bit of s. Up to A blocks
// (Shape::aggregation, rounded down to a power of two; at most P/2, where P is n rounded up to a
// power of two) travel in one message: blocks whose numbers differ by multiples of D = P/A. First
// come the trees above D, the farthest blocks first, one message for each distance; then the tree
// of the numbers below D, in the order of a walk that enters the far child first. reduce_scatter:
// the reverse, so that partial sums of block s leave by that distance, the nearest first.
// all_reduce is both, with the sums in the output.
//
// A rank sends log2 A + D-1 messages if n = P, and n-1 blocks; for all_reduce twice the messages
// and 2(n-1)/n of the vector. It reduces n-1 blocks, (n-1)/n of the vector for all_reduce. This
// walk is the benefit of a small A: scratch holds only the sums of others' blocks along one path
// down the tree, A log2(D) - 1 blocks, independent of the number of ranks.
//
// One lane sends and one receives, so that a message waits only for the blocks that it contains,
// and not for blocks that arrive at the same time. It waits only for blocks of messages before it,
// in an order that is the same on all ranks: one slot is enough.
#include <algorithm>
#include <bit>
#include <compare>
#include <map>
#include <optional>
#include <ranges>
#include <vector>

#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {
namespace {

/// Aggregation: blocks whose numbers differ by a multiple of the stride travel together.
struct Strides {
    explicit Strides(int ranks, int aggregation) : n(ranks) {
        const int most = floor_power(std::max(n - 1, 1));  // P/2
        aggregated = aggregation == 0 ? most : std::min(floor_power(aggregation), most);
        stride = 2 * most / aggregated;
    }

    /// Returns the blocks of the longest message, which goes to a neighbour.
    [[nodiscard]] int longest() const { return (n - 2) / stride + 1; }
    /// Returns the maximum number of waiting sums, without block 0's.
    [[nodiscard]] int sums() const { return longest() * floor_log2(stride) - 1; }
    /// Returns the place in which the sum of block s > 0 waits: sums of one distance use one place
    /// in turn.
    [[nodiscard]] int place_of(int s) const {
        const int within = s % stride;
        if (within == 0) return s / stride - 1;
        return std::countr_zero(static_cast<unsigned>(within)) * longest() - 1 + s / stride;
    }

    int n;
    int aggregated;  // A
    int stride;      // D
};

/// Message of every rank in an all_gather, to the rank `distance` before it: blocks first, first +
/// step, ..., numbered from the view of the receiver.
struct PatMessage {
    int distance = 0;
    int first = 0;
    int step = 1;
};

/// Messages of an all_gather, in order.
class PatMessages {
   public:
    explicit PatMessages(const Strides& of) : of_(of) {
        for (int distance = of.aggregated / 2 * of.stride; distance >= of.stride; distance /= 2)
            add(distance, distance, 2 * distance);
        walk(0, of.stride);
    }
    [[nodiscard]] const std::vector<PatMessage>& list() const { return list_; }

   private:
    void walk(int parent, int bit) {
        for (int distance = bit / 2; distance > 0; distance /= 2) {
            add(distance, parent + distance, of_.stride);
            walk(parent + distance, distance);
        }
    }
    void add(int distance, int first, int step) {
        if (first < of_.n) list_.push_back({distance, first, step});
    }

    const Strides& of_;
    std::vector<PatMessage> list_;
};

/// Builder of one rank's two lanes; tracks where the rank holds each block, or its partial sum.
class Pat {
   public:
    Pat(Program& program, const Member& me)
        : me_(me),
          strides_(me.n(), me.shape.aggregation),
          messages_(strides_),
          sends_(program),
          receives_(program),
          held_(static_cast<std::size_t>(me.n())) {}

    [[nodiscard]] const Strides& strides() const { return strides_; }
    void hold(int s, Slice slice) { held(s) = {slice, std::nullopt}; }

    /// Appends the reduction, which ends with the sum of block 0. Block s must be held; its partial
    /// sum gets the place sum_of(s).
    template <typename SliceFor>
    void reduce_towards_owners(SliceFor sum_of) {
        for (const PatMessage& message : std::views::reverse(messages_.list())) {
            send(arriving(message), me_.at(message.distance));
            accumulate(leaving(message), me_.at(-message.distance), sum_of);
        }
    }

    /// Appends the gather, which begins with block 0. That block must be held; block s gets the
    /// place home_of(s).
    template <typename SliceFor>
    void spread_from_owners(SliceFor home_of) {
        for (const PatMessage& message : messages_.list()) {
            send(leaving(message), me_.at(-message.distance));
            receive(arriving(message), me_.at(message.distance), home_of);
        }
    }

    void copy_own_block(Slice input, Slice output) { sends_.copy(input, output); }

   private:
    struct Held {
        Slice slice;
        std::optional<Dependency> since;  // the step that received it
    };

    [[nodiscard]] Held& held(int s) { return held_[static_cast<std::size_t>(s)]; }
    [[nodiscard]] std::vector<int> arriving(const PatMessage& message) const {
        std::vector<int> blocks;
        for (int s = message.first; s < me_.n(); s += message.step) blocks.push_back(s);
        return blocks;
    }
    /// Returns the same blocks, numbered from the view of the sender.
    [[nodiscard]] std::vector<int> leaving(const PatMessage& message) const {
        std::vector<int> blocks = arriving(message);
        for (int& s : blocks) s -= message.distance;
        return blocks;
    }
    void send(const std::vector<int>& blocks, Rank to) {
        Slices message;
        std::optional<Dependency> last;
        for (const int s : blocks) {
            message.add(held(s).slice);
            last = std::max(last, held(s).since);
        }
        if (last > awaited_) {
            sends_.wait_for(*last);
            awaited_ = last;
        }
        const Dependency step = sends_.send(message, to);
        for (const int s : blocks)
            if (held(s).slice.buffer == Buffer::kScratch) left_[held(s).slice.offset] = step;
    }

    template <typename SliceFor>
    void receive(const std::vector<int>& blocks, Rank from, SliceFor home_of) {
        Slices homes;
        for (const int s : blocks) homes.add(home_of(s));
        const Dependency step = receives_.recv(from, homes);
        for (const int s : blocks) held(s) = {home_of(s), step};
    }

    /// Adds a received message. These blocks either all have sums already, or none has; then the
    /// first sum adds the rank's own blocks to the message.
    template <typename SliceFor>
    void accumulate(const std::vector<int>& blocks, Rank from, SliceFor sum_of) {
        Slices own;
        Slices sums;
        for (const int s : blocks) {
            if (!held(s).since) own.add(held(s).slice);
            sums.add(sum_of(s));
        }
        if (!own.is_empty()) wait_until_left(sum_of(blocks.front()));
        const Dependency step = receives_.recv_reduce(from, own, sums);
        for (const int s : blocks) held(s) = {sum_of(s), step};
    }

    /// Waits for the previous sums in this place, which travelled together, as these will.
    void wait_until_left(Slice place) {
        const auto left = left_.find(place.offset);
        if (place.buffer == Buffer::kScratch && left != left_.end())
            receives_.wait_for(left->second);
    }

    const Member& me_;
    const Strides strides_;
    const PatMessages messages_;
    LaneBuilder sends_;
    LaneBuilder receives_;
    std::vector<Held> held_;             // by s
    std::optional<Dependency> awaited_;  // the last awaited step; earlier steps are done as well
    std::map<int, Dependency> left_;     // by offset in scratch: the step that sent its data
};

Program pat_all_reduce(const Member& me) {
    Program program;
    Pat pat(program, me);
    const auto output_of = [&](int s) { return part(me, Buffer::kOutput, me.at(s), me.n()); };
    for (int s = 0; s < me.n(); ++s) pat.hold(s, part(me, Buffer::kInput, me.at(s), me.n()));
    pat.reduce_towards_owners(output_of);
    pat.spread_from_owners(output_of);
    return program;
}

Program pat_all_gather(const Member& me) {
    Program program;
    Pat pat(program, me);
    const Slice input = me.block(Buffer::kInput, 0);
    pat.hold(0, input);
    pat.spread_from_owners([&](int s) { return me.block(Buffer::kOutput, me.at(s)); });
    pat.copy_own_block(input, me.block(Buffer::kOutput, me.rank));
    return program;
}

Program pat_reduce_scatter(const Member& me) {
    Program program;
    Pat pat(program, me);
    for (int s = 0; s < me.n(); ++s) pat.hold(s, me.block(Buffer::kInput, me.at(s)));
    const Strides& strides = pat.strides();
    add_scratch_blocks(program, me, strides.sums());
    pat.reduce_towards_owners([&](int s) {
        return s == 0 ? me.block(Buffer::kOutput, 0)
                      : me.block(Buffer::kScratch, strides.place_of(s));
    });
    return program;
}

/// Returns the rounds: a message is sent after the messages before it, and after the message that
/// brought its blocks has arrived.
int rounds_of_pat(const Strides& strides, const PatMessages& messages) {
    std::vector<int> arrived(static_cast<std::size_t>(strides.n));  // by a message's first block
    int spread = 0;  // the latest arrival over a distance of the stride or more
    int sent = 0;
    int received = 0;
    for (const auto& [distance, first, step] : messages.list()) {
        const int parent = first - distance;
        const bool has_others = first + step < strides.n;
        if (parent > 0) sent = std::max(sent, arrived[static_cast<std::size_t>(parent)]);
        if (parent == 0 && has_others) sent = std::max(sent, spread);
        received = std::max(received, sent + 1);
        arrived[static_cast<std::size_t>(first)] = received;
        if (distance >= strides.stride) spread = received;
    }
    return received;
}

BlockCost cost_of_pat(const Sizes& of) {
    const auto others = static_cast<double>(of.others());
    const Strides strides(of.n, of.aggregation);
    const PatMessages all(strides);
    const auto messages = static_cast<long long>(all.list().size());
    const int chain = rounds_of_pat(strides, all);
    if (of.kind != CollectiveKind::kAllReduce)
        return {chain, messages, others, of.if_reduced(others)};
    return {2 * chain, 2 * messages, 2 * others / of.n, others / of.n};
}

int longest_message(const Shape& shape) {
    if (shape.ranks == 1) return shape.chunks;
    const int blocks = Strides(shape.ranks, shape.aggregation).longest();
    return has_one_block(shape.kind) ? shape.chunks / shape.ranks * blocks : shape.chunks * blocks;
}

ScheduleSource pat_source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made = generated("pat", {kind, make, cost_of_pat}, 3);
    made.longest_message = longest_message;
    made.takes_uneven = has_known_blocks(kind);
    made.follows_order = true;
    made.aggregates = true;
    made.symmetry = seen_from_each_rank(kind);
    if (kind == CollectiveKind::kAllReduce) made.granularity = chunk_for_each_rank;
    return made;
}

}  // namespace

std::vector<ScheduleSource> pat() {
    return {pat_source(CollectiveKind::kAllReduce, pat_all_reduce),
            pat_source(CollectiveKind::kAllGather, pat_all_gather),
            pat_source(CollectiveKind::kReduceScatter, pat_reduce_scatter)};
}

}  // namespace pccl::schedule
