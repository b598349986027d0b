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
// log2 n rounds (rounded down) and n-1 blocks sent a rank, in as many messages, since the blocks of
// a distance do not adjoin; twice the rounds and 2(n-1)/n of the vector for all_reduce. n-1 blocks
// reduced a rank, (n-1)/n of the vector.
//
// One lane sends and one receives, so that the messages of a distance follow each other without
// waiting for those that arrive. A message waits for none but those before it in the order of
// distances, then of blocks, which is the same on all ranks: one slot is enough.
#include <bit>
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
            for (int s = last_from(distance); s > 0; s -= 2 * distance) {
                send(s, me_.at(distance));
                accumulate(s - distance, me_.at(-distance), sum_of(s - distance));
            }
        }
    }

    /// Begins with block 0, which must be held; block s gets the place home_of(s).
    template <typename SliceFor>
    void spread_from_owners(SliceFor home_of) {
        for (int distance = farthest(); distance > 0; distance /= 2) {
            for (int s = distance; s < me_.n(); s += 2 * distance) {
                send(s - distance, me_.at(-distance));
                held(s) = {home_of(s), receives_.recv(me_.at(distance), home_of(s))};
            }
        }
    }

    void copy_own_block(Slice input, Slice output) { sends_.copy(input, output); }

   private:
    struct Held {
        Slice slice;
        std::optional<Dependency> since;  // the step that received it
    };

    [[nodiscard]] Held& held(int s) { return held_[static_cast<std::size_t>(s)]; }
    /// The last of the odd multiples of `distance`, the blocks that come from there.
    [[nodiscard]] int last_from(int distance) const {
        const int multiple = (me_.n() - 1) / distance;
        return (multiple % 2 == 0 ? multiple - 1 : multiple) * distance;
    }
    [[nodiscard]] int farthest() const {
        return static_cast<int>(std::bit_floor(static_cast<unsigned>(me_.n() - 1)));
    }

    void send(int s, Rank to) {
        const auto& [slice, since] = held(s);
        if (since > awaited_) {
            sends_.wait_for(*since);
            awaited_ = since;
        }
        sends_.send(slice, to);
    }

    void accumulate(int s, Rank from, Slice sum) {
        const Slice own = held(s).since ? Slice{} : held(s).slice;
        held(s) = {sum, receives_.recv_reduce(from, own, sum)};
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

BlockCost cost(const Sizes& of) {
    const auto others = static_cast<double>(of.others());
    if (of.kind != CollectiveKind::kAllReduce)
        return {of.log, of.others(), others, of.if_reduced(others)};
    return {2 * of.log, 2 * of.others(), 2 * others / of.n, others / of.n};
}

ScheduleSource source(CollectiveKind kind, Program (*make)(const Member&)) {
    ScheduleSource made = generated("pat", {kind, make, cost});
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
