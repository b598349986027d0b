// PAT, parallel aggregated trees: every block goes down or up a binomial tree of its own, so that
// of all blocks few go far and many go to neighbours.
//
// Jeaugey, "PAT: a new algorithm for all-gather and reduce-scatter operations at scale",
// arXiv:2506.20252, 2025; here with full aggregation, which holds nothing back: an all_gather
// receives into the output of its caller. Relative to the rank that it is on, the block of rank
// (rank + s) mod n is block s.
//
// all_gather: block s comes from the rank at distance 2^d = the lowest bit of s, the farthest
// first: one block over the largest distance, n/2 over the smallest. reduce_scatter: the same
// backwards, so that partial sums of block s leave by that distance, the nearest first; sums of
// others' blocks lie in scratch, n/2-1 of them. all_reduce is both, with the sums in the output.
//
// The blocks of a distance travel together: log2 n messages a rank (rounded up), as many rounds
// (one less where only block 0 goes over the second largest distance) and n-1 blocks sent; twice
// the rounds and messages and 2(n-1)/n of the vector for all_reduce. n-1 blocks reduced a rank,
// (n-1)/n of the vector.
//
// One lane sends and one receives, so that a message waits for the blocks that are in it, and for
// none that arrive beside it. It waits for none but those of distances before its own, an order
// that is the same on all ranks: one slot is enough.
#include <algorithm>
#include <compare>
#include <optional>
#include <vector>

#include "csrc/schedule/generators/family.h"

namespace pccl::schedule {
namespace {

/// One rank's two lanes, and where it holds each block, or the part of its sum that it has.
class Pat {
   public:
    Pat(Program& program, const Member& me)
        : me_(me), sends_(program), receives_(program), held_(static_cast<std::size_t>(me.n())) {}

    void hold(int s, Slice slice) { held(s) = {slice, std::nullopt}; }

    /// Ends with the sum of block 0. Block s must be held; its partial sum gets the place
    /// sum_of(s).
    template <typename SliceFor>
    void reduce_towards_owners(SliceFor sum_of) {
        for (int distance = 1; distance < me_.n(); distance *= 2) {
            send(coming_from(distance), me_.at(distance));
            accumulate(going_over(distance), me_.at(-distance), sum_of);
        }
    }

    /// Begins with block 0, which must be held; block s gets the place home_of(s).
    template <typename SliceFor>
    void spread_from_owners(SliceFor home_of) {
        for (int distance = floor_power(me_.n() - 1); distance > 0; distance /= 2) {
            send(going_over(distance), me_.at(-distance));
            receive(coming_from(distance), me_.at(distance), home_of);
        }
    }

    void copy_own_block(Slice input, Slice output) { sends_.copy(input, output); }

   private:
    struct Held {
        Slice slice;
        std::optional<Dependency> since;  // the step that received it
    };

    [[nodiscard]] Held& held(int s) { return held_[static_cast<std::size_t>(s)]; }
    /// The blocks that come from the rank at `distance`, as seen from here: its odd multiples.
    [[nodiscard]] std::vector<int> coming_from(int distance) const {
        std::vector<int> blocks;
        for (int s = distance; s < me_.n(); s += 2 * distance) blocks.push_back(s);
        return blocks;
    }
    /// As seen from where they come from.
    [[nodiscard]] std::vector<int> going_over(int distance) const {
        std::vector<int> blocks = coming_from(distance);
        for (int& s : blocks) s -= distance;
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
        sends_.send(message, to);
    }

    template <typename SliceFor>
    void receive(const std::vector<int>& blocks, Rank from, SliceFor home_of) {
        Slices homes;
        for (const int s : blocks) homes.add(home_of(s));
        const Dependency step = receives_.recv(from, homes);
        for (const int s : blocks) held(s) = {home_of(s), step};
    }

    /// All of these blocks have sums already, or none: they all get their first from next to it.
    template <typename SliceFor>
    void accumulate(const std::vector<int>& blocks, Rank from, SliceFor sum_of) {
        Slices own;
        Slices sums;
        for (const int s : blocks) {
            if (!held(s).since) own.add(held(s).slice);
            sums.add(sum_of(s));
        }
        const Dependency step = receives_.recv_reduce(from, own, sums);
        for (const int s : blocks) held(s) = {sum_of(s), step};
    }

    const Member& me_;
    LaneBuilder sends_;
    LaneBuilder receives_;
    std::vector<Held> held_;             // by s
    std::optional<Dependency> awaited_;  // the last one; those before it are done as well
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
    add_scratch_blocks(program, me, me.n() / 2 - 1);
    pat.reduce_towards_owners([&](int s) {
        return s == 0 ? me.block(Buffer::kOutput, 0) : me.block(Buffer::kScratch, s / 2 - 1);
    });
    return program;
}

/// Over the second largest distance a block that came over the largest goes on only where there are
/// ranks enough.
int rounds(const Sizes& of) {
    return ceil_log2(of.n) - (3 * floor_power(of.n - 1) >= 2 * of.n ? 1 : 0);
}

BlockCost cost(const Sizes& of) {
    const auto others = static_cast<double>(of.others());
    const int messages = ceil_log2(of.n);
    if (of.kind != CollectiveKind::kAllReduce)
        return {rounds(of), messages, others, of.if_reduced(others)};
    return {2 * rounds(of), 2LL * messages, 2 * others / of.n, others / of.n};
}

ScheduleSource source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made = generated("pat", {kind, make, cost}, 2);
    made.longest_message = half_of_blocks;
    made.takes_uneven = kind == CollectiveKind::kAllGather;
    made.follows_order = true;
    if (kind == CollectiveKind::kAllReduce) made.granularity = chunk_for_each_rank;
    return made;
}

}  // namespace

std::vector<ScheduleSource> pat() {
    return {source(CollectiveKind::kAllReduce, pat_all_reduce),
            source(CollectiveKind::kAllGather, pat_all_gather),
            source(CollectiveKind::kReduceScatter, pat_reduce_scatter)};
}

}  // namespace pccl::schedule
