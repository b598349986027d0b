// SPDX-License-Identifier: Apache-2.0

// Hierarchical collectives over rails. There are as many rails as the smallest host has ranks: rail
// j consists of the ranks with number j on their hosts, and carries the blocks of all ranks whose
// number is j modulo the rails. Messages between hosts stay on their rail. A host sends only bytes
// that another host lacks: for all_gather and reduce_scatter (hosts-1) times its own ranks' blocks,
// for all_reduce 2(hosts-1)/hosts of the vector. With a rail for each NIC, all NICs of a host work
// at once.
//
// all_gather: ranks without a rail give their block to the rank that carries it; each rail gathers
// the blocks of its ranks; on each host, each rail's rank sends its blocks to all others.
// reduce_scatter: the reverse. all_reduce: the vector has a part for each rail; the ranks of a host
// reduce each part at its rail's rank, the rail makes an all_reduce of it, and its rank sends the
// sum to all others. Every element is summed once and then forwarded.
//
// Between hosts the rails run PAT, or a ring, which keeps no sums in scratch, for sums of blocks
// that differ in number from host to host.
#include "csrc/schedule/generators/hierarchical.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/schedule/generators/builder.h"
#include "csrc/schedule/generators/counted.h"
#include "csrc/schedule/generators/embedding.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {
namespace {

/// Map of ranks to hosts and rails.
class RailMap {
   public:
    explicit RailMap(std::vector<int> sizes)
        : sizes_(std::move(sizes)), rails_(*std::ranges::min_element(sizes_)) {
        for (const int size : sizes_) first_.push_back(first_.back() + size);
    }

    [[nodiscard]] int hosts() const { return static_cast<int>(sizes_.size()); }
    [[nodiscard]] int ranks() const { return first_.back(); }
    [[nodiscard]] int rails() const { return rails_; }
    [[nodiscard]] int size(int host) const { return sizes_[static_cast<std::size_t>(host)]; }
    [[nodiscard]] int largest() const { return *std::ranges::max_element(sizes_); }
    [[nodiscard]] bool is_even() const { return largest() == rails_; }
    [[nodiscard]] Rank rank(int host, int number) const {
        return first_[static_cast<std::size_t>(host)] + number;
    }
    [[nodiscard]] int host_of(Rank rank) const {
        const auto next = std::ranges::upper_bound(first_, rank);
        return static_cast<int>(next - first_.begin()) - 1;
    }
    /// Returns the rank's number on its host.
    [[nodiscard]] int number_of(Rank own) const { return own - rank(host_of(own), 0); }
    /// Returns the ranks whose blocks a rail carries for a host; the rank on the rail is the first.
    [[nodiscard]] std::vector<Rank> carried(int host, int rail) const {
        std::vector<Rank> ranks;
        for (int number = rail; number < size(host); number += rails_)
            ranks.push_back(rank(host, number));
        return ranks;
    }
    [[nodiscard]] std::vector<Rank> carried(int rail) const {
        std::vector<Rank> ranks;
        for (int host = 0; host < hosts(); ++host)
            std::ranges::copy(carried(host, rail), std::back_inserter(ranks));
        return ranks;
    }
    [[nodiscard]] std::vector<Rank> on_rail(int rail) const {
        std::vector<Rank> ranks(first_.begin(), first_.end() - 1);
        for (Rank& rank : ranks) rank += rail;
        return ranks;
    }
    [[nodiscard]] std::string text() const {
        std::string text;
        for (const int size : sizes_) text += concat(" ", size);
        return text;
    }

   private:
    std::vector<int> sizes_;
    std::vector<Rank> first_{0};
    int rails_;
};

/// Maker of the program of one rank, step by step.
class HierarchicalMaker {
   public:
    HierarchicalMaker(const RailMap& places, const Member& me)
        : places_(places),
          me_(me),
          host_(places.host_of(me.rank)),
          number_(places.number_of(me.rank)),
          rail_(number_ % places.rails()),
          relays_(program_),
          sends_(program_),
          receives_(program_) {}

    Program all_gather() &&;
    Program reduce_scatter() &&;
    Program all_reduce() &&;

   private:
    using SlicesFor = std::function<Slices(int number)>;

    /// Sums of blocks, in the order of `ranks`.
    struct Sums {
        std::vector<Rank> ranks;
        Slice first;  // of the first rank

        [[nodiscard]] Slice of(Rank rank) const {
            const auto index = static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
            return {first.buffer, first.offset + index * first.count, first.count};
        }
    };

    [[nodiscard]] bool is_on_rail() const { return number_ < places_.rails(); }
    [[nodiscard]] bool is_alone() const { return places_.size(host_) == 1; }
    /// Returns the rank on the rail that carries this rank's block.
    [[nodiscard]] Rank carrier() const { return places_.rank(host_, rail_); }
    [[nodiscard]] std::vector<Rank> carried() const { return places_.carried(host_, rail_); }
    [[nodiscard]] Slices blocks(Buffer buffer, const std::vector<Rank>& ranks) const {
        Slices all;
        for (const Rank rank : ranks) all.add(me_.block(buffer, rank));
        return all;
    }
    [[nodiscard]] Slice part_of(Buffer buffer, int rail) const {
        return part(me_, buffer, rail, places_.rails());
    }
    /// Returns the blocks that a rail gathers, without the block of `but`.
    [[nodiscard]] Slices gathered(int rail, Rank but) const {
        std::vector<Rank> ranks = places_.carried(rail);
        std::erase(ranks, but);
        return blocks(Buffer::kOutput, ranks);
    }

    /// Sends to the other ranks among the first `numbers` of this host, the next one first.
    void send_to(int numbers, const SlicesFor& slices_for) {
        for (int i = 1; i < places_.size(host_); ++i)
            if (const int other = (number_ + i) % places_.size(host_); other < numbers)
                sent_ = {sends_.send(slices_for(other), places_.rank(host_, other))};
    }
    /// Receives from the ranks that send_to() addresses, in the order in which they send to this
    /// rank.
    template <typename Receive>
    void receive_from(int numbers, Receive receive) {
        for (int i = places_.size(host_) - 1; i > 0; --i)
            if (const int other = (number_ + i) % places_.size(host_); other < numbers)
                receive(other, places_.rank(host_, other));
    }
    /// Appends own (+) the contributions of all other ranks of this host.
    void reduce_from_others(Slices own, const Slices& sum) {
        receive_from(places_.size(host_), [&](int /*number*/, Rank other) {
            done_ = {receives_.recv_reduce(other, std::exchange(own, {}), sum)};
        });
    }
    void receive_from_rails(const SlicesFor& slices_for) {
        receive_from(places_.rails(),
                     [&](int rail, Rank from) { receives_.recv(from, slices_for(rail)); });
    }
    /// Embeds a collective of the ranks on this rank's rail; returns the last steps of its lanes.
    std::vector<Dependency> run_on_rail(const Program& part,
                                        const std::function<Slices(const Slice&)>& place) {
        const std::vector<Rank> ranks = places_.on_rail(rail_);
        return embed(program_, part, {ranks, place}, done_);
    }
    [[nodiscard]] Program rail_program(std::string_view name, CollectiveKind kind,
                                       int chunks = 1) const {
        const SourcePtr source = built_in(name, kind).value();
        Shape shape = least_shape(*source, places_.hosts());
        shape.chunks = std::max(shape.chunks, chunks);
        return source->program(shape, host_);
    }
    Sums reserve_sums(std::vector<Rank> ranks) {
        Slice all = add_scratch_blocks(program_, me_, static_cast<int>(ranks.size()));
        all.count = me_.chunks();
        return {std::move(ranks), all};
    }

    const RailMap& places_;
    const Member& me_;
    const int host_;
    const int number_;  // on its host
    const int rail_;
    Program program_;
    // Lanes within this host; for two ranks one lane on each sends and receives.
    LaneBuilder relays_;  // between a rank without a rail and its carrier
    LaneBuilder sends_;
    LaneBuilder receives_;
    std::vector<Dependency> sent_;  // latest steps
    std::vector<Dependency> done_;  // steps that the rail waits for
};

Program HierarchicalMaker::all_gather() && {
    const Slice own = me_.block(Buffer::kInput, 0);
    const auto from_rail = [&](int rail) { return gathered(rail, me_.rank); };
    done_ = {relays_.copy(own, me_.block(Buffer::kOutput, me_.rank))};
    if (!is_on_rail()) {
        relays_.send(own, carrier());
        receive_from_rails(from_rail);
        return std::move(program_);
    }
    for (const Rank rank : carried())
        if (rank != me_.rank) done_ = {relays_.recv(rank, me_.block(Buffer::kOutput, rank))};
    // A block of the rail's collective is the blocks of a host, all of which lie in the output.
    const auto place = [&](const Slice& slice) {
        Slices all;
        for (int i = 0; i < slice.count; ++i) {
            const int host = slice.buffer == Buffer::kInput ? host_ : slice.offset + i;
            for (const Rank rank : places_.carried(host, rail_))
                all.add(me_.block(Buffer::kOutput, rank));
        }
        return all;
    };
    sends_.wait_for(run_on_rail(rail_program("pat", CollectiveKind::kAllGather), place));
    send_to(places_.size(host_),
            [&](int other) { return gathered(rail_, places_.rank(host_, other)); });
    receive_from_rails(from_rail);
    return std::move(program_);
}

Program HierarchicalMaker::reduce_scatter() && {
    send_to(places_.rails(),
            [&](int rail) { return blocks(Buffer::kInput, places_.carried(rail)); });
    if (!is_on_rail()) {
        relays_.wait_for(sent_).recv(carrier(), me_.block(Buffer::kOutput, 0));
        return std::move(program_);
    }
    const std::vector<Rank> all = places_.carried(rail_);
    const Sums here = reserve_sums(is_alone() ? std::vector<Rank>{} : all);
    if (!is_alone())
        reduce_from_others(
            blocks(Buffer::kInput, all),
            {here.first.buffer, here.first.offset, static_cast<int>(all.size()) * me_.chunks()});
    // This rank's own sum goes directly to the output.
    const Sums made = reserve_sums(carried().size() > 1 ? carried() : std::vector<Rank>{});
    const Program rail =
        rail_program(places_.is_even() ? "pat" : "ring", CollectiveKind::kReduceScatter);
    // If the hosts differ, a ring runs, which has no scratch.
    const Slice scratch = add_scratch_blocks(program_, me_, rail.scratch_chunks);
    const auto block = [&](Buffer buffer, Rank rank) {
        if (buffer == Buffer::kInput)
            return is_alone() ? me_.block(Buffer::kInput, rank) : here.of(rank);
        return rank == me_.rank ? me_.block(Buffer::kOutput, 0) : made.of(rank);
    };
    const auto place = [&](const Slice& slice) {
        Slices placed;
        if (slice.buffer == Buffer::kScratch)
            return Slices(Slice{Buffer::kScratch, scratch.offset + slice.offset * me_.chunks(),
                                slice.count * me_.chunks()});
        for (int i = 0; i < slice.count; ++i)
            for (const Rank rank :
                 places_.carried(slice.buffer == Buffer::kInput ? slice.offset + i : host_, rail_))
                placed.add(block(slice.buffer, rank));
        return placed;
    };
    relays_.wait_for(run_on_rail(rail, place));
    for (const Rank rank : carried())
        if (rank != me_.rank) relays_.send(made.of(rank), rank);
    return std::move(program_);
}

Program HierarchicalMaker::all_reduce() && {
    const auto sum_of = [&](int rail) { return part_of(Buffer::kOutput, rail); };
    send_to(places_.rails(), [&](int rail) { return part_of(Buffer::kInput, rail); });
    if (is_on_rail()) reduce_from_others(part_of(Buffer::kInput, rail_), sum_of(rail_));
    receives_.wait_for(sent_);  // if a sum overwrites data that was sent
    if (!is_on_rail()) {
        receive_from_rails(sum_of);
        return std::move(program_);
    }
    const Slice own = sum_of(rail_);
    const auto place = [&](const Slice& slice) {
        const bool is_input = slice.buffer == Buffer::kInput && is_alone();
        return Slices(Slice{is_input ? Buffer::kInput : Buffer::kOutput, own.offset + slice.offset,
                            slice.count});
    };
    sends_.wait_for(run_on_rail(rail_program("pat", CollectiveKind::kAllReduce, own.count), place));
    send_to(places_.size(host_), [&](int /*other*/) { return own; });
    receive_from_rails(sum_of);
    return std::move(program_);
}

Program hierarchical_program(const RailMap& places, const Shape& shape, Rank rank) {
    const Member me{shape, rank};
    HierarchicalMaker maker(places, me);
    switch (shape.kind) {
        case CollectiveKind::kAllGather:
            return std::move(maker).all_gather();
        case CollectiveKind::kReduceScatter:
            return std::move(maker).reduce_scatter();
        default:
            return std::move(maker).all_reduce();
    }
}

/// Returns the rounds. If the hosts differ, the longest chain may have one round less.
long long hierarchical_rounds(const RailMap& places, CollectiveKind kind) {
    const std::string_view name =
        kind == CollectiveKind::kReduceScatter && !places.is_even() ? "ring" : "pat";
    const SourcePtr rail = built_in(name, kind).value();
    const long long between = rail->cost(least_shape(*rail, places.hosts()), 1).rounds;
    const int exchange = places.largest() > 1 ? 1 : 0;
    const int relay = places.is_even() ? 0 : 1;
    return between + exchange + (kind == CollectiveKind::kAllReduce ? exchange : relay);
}

SourcePtr hierarchical_source(const std::shared_ptr<const RailMap>& places, CollectiveKind kind) {
    Digest identity;
    identity.add(concat("hierarchical ", to_string(kind), " 1", places->text()));
    const bool has_ring = kind == CollectiveKind::kReduceScatter && !places->is_even();
    const Shape only{
        .kind = kind,
        .ranks = places->ranks(),
        .chunks = kind == CollectiveKind::kAllReduce ? places->rails() * places->hosts() : 1,
        .slots = has_ring ? 2 : 1};
    const auto counted = std::make_shared<CountedCost>(
        only, hierarchical_rounds(*places, kind),
        [places, only](Rank rank) { return hierarchical_program(*places, only, rank); });
    ScheduleSource made{
        .name = "hierarchical",
        .kind = kind,
        .digest = identity.value(),
        .only = only,
        .slots = only.slots,
        .takes_uneven = has_known_blocks(kind),
        .follows_order = true,
        .granularity = [chunks = only.chunks](int /*ranks*/) { return chunks; },
        .longest_message = [counted](const Shape& /*shape*/) { return counted->longest_message(); },
        .cost = [counted](const Shape& /*shape*/,
                          double block_bytes) { return counted->of(block_bytes); },
        .program = [places](const Shape& shape,
                            Rank rank) { return hierarchical_program(*places, shape, rank); }};
    return std::make_shared<const ScheduleSource>(std::move(made));
}

}  // namespace

std::vector<SourcePtr> hierarchical(const std::vector<int>& ranks_by_host) {
    if (ranks_by_host.size() < 2 || std::ranges::max(ranks_by_host) < 2) return {};
    const auto places = std::make_shared<const RailMap>(ranks_by_host);
    return {hierarchical_source(places, CollectiveKind::kAllReduce),
            hierarchical_source(places, CollectiveKind::kAllGather),
            hierarchical_source(places, CollectiveKind::kReduceScatter)};
}

}  // namespace pccl::schedule
