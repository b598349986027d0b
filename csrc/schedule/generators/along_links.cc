// SPDX-License-Identifier: Apache-2.0

// Trees of shortest paths: block b goes down a tree rooted at rank b, and sums of block b go up a
// tree that ends there. Among several shortest paths a block takes the one whose link carries the
// least so far.
//
// The blocks that cross a link at the same distance from their owners travel in one message. On
// every link the blocks of small distances come first, and in sums those of large distances. So a
// message waits only for messages that precede it in one global order: one slot is enough.
//
// Sums begin as copies of a rank's own blocks: in the output if the block is the rank's own, or for
// an all_reduce; in scratch otherwise.
#include "csrc/schedule/generators/along_links.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/schedule/generators/builder.h"
#include "csrc/schedule/generators/counted.h"
#include "csrc/schedule/generators/family.h"
#include "csrc/schedule/moved_blocks.h"

namespace pccl::schedule {
namespace {

constexpr int kUnreached = -1;

/// Position of a rank in the tree of one block.
struct Spot {
    Rank next = kNoRank;        // the neighbour towards the owner
    int distance = kUnreached;  // links to the owner
};

/// Shortest paths between all ranks, by owner; identical on all ranks.
class Trees {
   public:
    /// Direction: along links from the owner, or towards it.
    enum class TreeDirection { kDown, kUp };

    Trees(int ranks, const std::vector<DirectedLink>& links, TreeDirection way) : ranks_(ranks) {
        std::vector<std::vector<Rank>> beyond(static_cast<std::size_t>(ranks));
        for (const DirectedLink& link : links) {
            if (way == TreeDirection::kDown)
                beyond[static_cast<std::size_t>(link.from)].push_back(link.to);
            else
                beyond[static_cast<std::size_t>(link.to)].push_back(link.from);
        }
        spots_.resize(static_cast<std::size_t>(ranks));
        for (Rank owner = 0; owner < ranks; ++owner) grow(owner, beyond);
    }

    [[nodiscard]] const Spot& at(Rank owner, Rank rank) const {
        return spots_[static_cast<std::size_t>(owner)][static_cast<std::size_t>(rank)];
    }
    [[nodiscard]] bool is_next(Rank owner, Rank rank, Rank next) const {
        return rank != owner && at(owner, rank).next == next;
    }
    /// Returns whether the tree of `owner` has ranks beyond `rank`.
    [[nodiscard]] bool is_passed(Rank owner, Rank rank) const {
        for (Rank other = 0; other < ranks_; ++other)
            if (is_next(owner, other, rank)) return true;
        return false;
    }
    [[nodiscard]] int longest() const {
        int longest = 0;
        for (const auto& tree : spots_)
            for (const Spot& spot : tree) longest = std::max(longest, spot.distance);
        return longest;
    }

   private:
    void grow(Rank owner, const std::vector<std::vector<Rank>>& beyond) {
        auto& tree = spots_[static_cast<std::size_t>(owner)];
        tree.resize(static_cast<std::size_t>(ranks_));
        tree[static_cast<std::size_t>(owner)].distance = 0;
        for (std::vector<Rank> front{owner}; !front.empty();) {
            std::vector<Rank> reached;
            for (const Rank rank : front)
                for (const Rank other : beyond[static_cast<std::size_t>(rank)])
                    offer(tree, rank, other, reached);
            for (const Rank rank : reached) ++load(rank, tree[static_cast<std::size_t>(rank)].next);
            front = std::move(reached);
        }
    }

    void offer(std::vector<Spot>& tree, Rank next, Rank rank, std::vector<Rank>& reached) {
        const int distance = tree[static_cast<std::size_t>(next)].distance + 1;
        Spot& spot = tree[static_cast<std::size_t>(rank)];
        if (spot.distance == kUnreached) {
            spot = {next, distance};
            reached.push_back(rank);
        } else if (spot.distance == distance && load(rank, next) < load(rank, spot.next)) {
            spot.next = next;
        }
    }

    int& load(Rank rank, Rank next) { return loads_[{rank, next}]; }

    int ranks_;
    std::vector<std::vector<Spot>> spots_;        // by owner and rank
    std::map<std::pair<Rank, Rank>, int> loads_;  // blocks by link
};

struct TreeNetwork {
    TreeNetwork(int size, std::vector<DirectedLink> all)
        : ranks(size),
          links(std::move(all)),
          down(ranks, links, Trees::TreeDirection::kDown),
          up(ranks, links, Trees::TreeDirection::kUp) {}

    int ranks;
    std::vector<DirectedLink> links;
    Trees down;
    Trees up;
};

/// Maker of the program of one rank.
class AlongLinksMaker {
   public:
    AlongLinksMaker(const TreeNetwork& network, const Member& me)
        : network_(network), me_(me), first_(program_) {
        for (const DirectedLink& link : network.links) {
            if (link.from == me.rank) sends_.emplace(link.to, LaneBuilder(program_));
            if (link.to == me.rank) receives_.emplace(link.from, LaneBuilder(program_));
        }
        for (Rank owner = 0; owner < network.ranks; ++owner) owners_.push_back(owner);
    }

    Program all_gather() && {
        held_[me_.rank] = {first_.copy(me_.block(Buffer::kInput, 0), output_of(me_.rank))};
        spread();
        return std::move(program_);
    }
    Program reduce_scatter() && {
        for (const Rank owner : owners_) {
            if (owner == me_.rank)
                places_[owner] = me_.block(Buffer::kOutput, 0);
            else if (network_.up.is_passed(owner, me_.rank))
                places_[owner] = add_scratch_blocks(program_, me_, 1);
        }
        sum();
        return std::move(program_);
    }
    Program all_reduce() && {
        for (const Rank owner : owners_)
            if (owner == me_.rank || network_.up.is_passed(owner, me_.rank))
                places_[owner] = output_of(owner);
        sum();
        spread();
        return std::move(program_);
    }
    Program broadcast() && {
        owners_ = {me_.shape.root};
        if (me_.is_root())
            held_[me_.rank] = {first_.copy(me_.block(Buffer::kInput, 0), output_of(me_.rank))};
        spread();
        return std::move(program_);
    }
    Program reduce() && {
        const Rank root = me_.shape.root;
        owners_ = {root};
        if (me_.is_root())
            places_[root] = output_of(root);
        else if (network_.up.is_passed(root, me_.rank))
            places_[root] = add_scratch_blocks(program_, me_, 1);
        sum();
        return std::move(program_);
    }

   private:
    using Blocks = std::vector<Rank>;  // by their owners

    [[nodiscard]] Slice of(Buffer buffer, Rank owner) const {
        switch (me_.shape.kind) {
            case CollectiveKind::kAllReduce:
                return part(me_, buffer, owner, me_.n());
            case CollectiveKind::kBroadcast:
            case CollectiveKind::kReduce:
                return me_.block(buffer, 0);
            default:
                return me_.block(buffer, owner);
        }
    }
    [[nodiscard]] Slice output_of(Rank owner) const { return of(Buffer::kOutput, owner); }
    [[nodiscard]] Slice input_of(Rank owner) const { return of(Buffer::kInput, owner); }

    /// Returns the blocks for which `is_here`, by distance from their owners.
    template <typename IsHere, typename Distance>
    [[nodiscard]] std::map<int, Blocks> by_distance(IsHere is_here, Distance distance) const {
        std::map<int, Blocks> found;
        for (const Rank owner : owners_)
            if (is_here(owner)) found[distance(owner)].push_back(owner);
        return found;
    }

    /// Sends every held block down its tree, into the output of all ranks.
    void spread() {
        const Trees& trees = network_.down;
        for (auto& [from, lane] : receives_) {
            const auto messages =
                by_distance([&](Rank owner) { return trees.is_next(owner, me_.rank, from); },
                            [&](Rank owner) { return trees.at(owner, me_.rank).distance; });
            for (const auto& [distance, blocks] : messages) {
                Slices homes;
                for (const Rank owner : blocks) homes.add(output_of(owner));
                const Dependency step = lane.wait_for(left(blocks)).recv(from, homes);
                for (const Rank owner : blocks) held_[owner] = {step};
            }
        }
        for (auto& [to, lane] : sends_) {
            const auto messages =
                by_distance([&](Rank owner) { return trees.is_next(owner, to, me_.rank); },
                            [&](Rank owner) { return trees.at(owner, to).distance; });
            for (const auto& [distance, blocks] : messages) {
                Slices message;
                for (const Rank owner : blocks) message.add(output_of(owner));
                lane.wait_for(steps(held_, blocks)).send(message, to);
            }
        }
    }

    /// Sends the sum of every block up its tree; this rank makes sums of the blocks in places_.
    void sum() {
        const Trees& trees = network_.up;
        for (const auto& [owner, place] : places_)
            held_[owner] = {first_.copy(input_of(owner), place)};
        // Ordered from the farthest distance on, then by rank: all parts of a block come from one
        // distance.
        std::map<std::pair<int, Rank>, Blocks> arrivals;
        for (const auto& [from, lane] : receives_)
            for (const auto& [distance, blocks] :
                 by_distance([&](Rank owner) { return trees.is_next(owner, from, me_.rank); },
                             [&](Rank owner) { return trees.at(owner, from).distance; }))
                arrivals[{-distance, from}] = blocks;
        for (const auto& [when, blocks] : arrivals) {
            Slices sums;
            for (const Rank owner : blocks) sums.add(places_.at(owner));
            LaneBuilder& lane = receives_.at(when.second);
            const Dependency step =
                lane.wait_for(steps(held_, blocks)).recv_accumulate(when.second, sums);
            for (const Rank owner : blocks) held_[owner] = {step};
        }
        for (auto& [to, lane] : sends_) {
            const auto messages =
                by_distance([&](Rank owner) { return trees.is_next(owner, me_.rank, to); },
                            [&](Rank owner) { return -trees.at(owner, me_.rank).distance; });
            for (const auto& [distance, blocks] : messages) {
                Slices message;
                for (const Rank owner : blocks)
                    message.add(places_.contains(owner) ? places_.at(owner) : input_of(owner));
                const Dependency step = lane.wait_for(steps(held_, blocks)).send(message, to);
                for (const Rank owner : blocks) left_[owner] = {step};
            }
        }
    }

    using Steps = std::map<Rank, std::vector<Dependency>>;  // by block

    [[nodiscard]] static std::vector<Dependency> steps(const Steps& known, const Blocks& blocks) {
        std::vector<Dependency> found;
        for (const Rank owner : blocks)
            if (const auto one = known.find(owner); one != known.end())
                for (const Dependency& step : one->second)
                    if (std::ranges::find(found, step) == found.end()) found.push_back(step);
        return found;
    }
    /// Returns the steps that have sent the data at the places to which these blocks come.
    [[nodiscard]] std::vector<Dependency> left(const Blocks& blocks) const {
        return steps(left_, blocks);
    }

    const TreeNetwork& network_;
    const Member& me_;
    Program program_;
    LaneBuilder first_;  // copies
    std::map<Rank, LaneBuilder> sends_;
    std::map<Rank, LaneBuilder> receives_;
    std::vector<Rank> owners_;      // blocks that move
    std::map<Rank, Slice> places_;  // sums that this rank makes, by owner
    Steps held_;                    // step that brought a block, or the latest part of its sum
    Steps left_;                    // step that sent a sum
};

Program program_along_links(const TreeNetwork& network, const Shape& shape, Rank rank) {
    const Member me{shape, rank};
    AlongLinksMaker maker(network, me);
    switch (shape.kind) {
        case CollectiveKind::kAllGather:
            return std::move(maker).all_gather();
        case CollectiveKind::kReduceScatter:
            return std::move(maker).reduce_scatter();
        case CollectiveKind::kBroadcast:
            return std::move(maker).broadcast();
        case CollectiveKind::kReduce:
            return std::move(maker).reduce();
        default:
            return std::move(maker).all_reduce();
    }
}

long long rounds_along_links(const TreeNetwork& network, CollectiveKind kind) {
    const int down = network.down.longest();
    const int up = network.up.longest();
    if (kind == CollectiveKind::kAllReduce) return up + down;
    return reduces(kind) ? up : down;
}

SourcePtr source_along_links(std::string_view name,
                             const std::shared_ptr<const TreeNetwork>& network,
                             CollectiveKind kind) {
    Digest identity;
    identity.add(concat("along links ", name, " ", to_string(kind), " 1 ", network->ranks));
    for (const DirectedLink& link : network->links)
        identity.add(concat(" ", link.from, ">", link.to));
    const Shape only{.kind = kind,
                     .ranks = network->ranks,
                     .chunks = kind == CollectiveKind::kAllReduce ? network->ranks : 1,
                     .slots = 1};
    const auto counted = std::make_shared<CountedCost>(
        only, rounds_along_links(*network, kind),
        [network, only](Rank rank) { return program_along_links(*network, only, rank); });
    ScheduleSource made{
        .name = std::string(name),
        .kind = kind,
        .digest = identity.value(),
        .only = only,
        .any_root = true,
        .slots = 1,
        .takes_uneven = has_known_blocks(kind),
        .granularity = [chunks = only.chunks](int /*ranks*/) { return chunks; },
        .longest_message = [counted](const Shape& /*shape*/) { return counted->longest_message(); },
        .cost = [counted](const Shape& /*shape*/,
                          double block_bytes) { return counted->of(block_bytes); },
        .program = [network](const Shape& shape,
                             Rank rank) { return program_along_links(*network, shape, rank); }};
    return std::make_shared<const ScheduleSource>(std::move(made));
}

Status check(const TreeNetwork& network) {
    for (Rank from = 0; from < network.ranks; ++from)
        for (Rank to = 0; to < network.ranks; ++to)
            if (network.down.at(from, to).distance == kUnreached)
                return Status::invalid_argument(
                    concat("rank ", from, " has no way to rank ", to, " along the links"));
    return Status::ok();
}

}  // namespace

Result<std::vector<SourcePtr>> along_links(std::string_view name, int ranks,
                                           std::vector<DirectedLink> links) {
    for (const auto& [from, to] : links)
        if (from < 0 || to < 0 || from >= ranks || to >= ranks || from == to)
            return Status::invalid_argument(concat("a link from ", from, " to ", to,
                                                   ": they must be two of the ranks 0 to ",
                                                   ranks - 1));
    std::ranges::sort(links);
    const auto [end, last] = std::ranges::unique(links);
    links.erase(end, last);
    const auto network = std::make_shared<const TreeNetwork>(ranks, std::move(links));
    PCCL_TRY(check(*network));
    std::vector<SourcePtr> sources;
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
          CollectiveKind::kBroadcast, CollectiveKind::kReduce})
        sources.push_back(source_along_links(name, network, kind));
    return sources;
}

}  // namespace pccl::schedule
