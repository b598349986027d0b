// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/generators/link_graph.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "csrc/schedule/generators/ring_search.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

LinkGraph::LinkGraph(int ranks, const std::vector<DirectedLink>& links) : ranks_(ranks) {
    const auto is_rank = [&](Rank rank) { return rank >= 0 && rank < ranks; };
    std::set<DirectedLink> own;
    for (const DirectedLink& link : links)
        if (is_rank(link.from) && is_rank(link.to) && link.from != link.to) own.insert(link);
    links_.assign(own.begin(), own.end());
}

bool LinkGraph::has(Rank from, Rank to) const {
    return std::ranges::binary_search(links_, DirectedLink{from, to});
}

bool LinkGraph::is_complete() const {
    const auto ranks = static_cast<std::size_t>(ranks_);
    return links_.size() == ranks * (ranks - 1);
}

std::vector<bool> LinkGraph::reached_from(Rank first) const {
    std::vector<bool> is_reached(static_cast<std::size_t>(ranks_), false);
    is_reached[static_cast<std::size_t>(first)] = true;
    for (std::vector<Rank> front{first}; !front.empty();) {
        const Rank from = front.back();
        front.pop_back();
        for (const DirectedLink& link : links_) {
            const auto to = static_cast<std::size_t>(link.to);
            if (link.from != from || is_reached[to]) continue;
            is_reached[to] = true;
            front.push_back(link.to);
        }
    }
    return is_reached;
}

std::optional<DirectedLink> LinkGraph::apart() const {
    for (Rank from = 0; from < ranks_; ++from) {
        const std::vector<bool> is_reached = reached_from(from);
        const auto missed = std::ranges::find(is_reached, false);
        if (missed != is_reached.end())
            return DirectedLink{from, static_cast<Rank>(missed - is_reached.begin())};
    }
    return std::nullopt;
}

RankOrder LinkGraph::ring() const {
    RankOrder order(static_cast<std::size_t>(ranks_));
    std::iota(order.begin(), order.end(), 0);
    const bool is_in_order = std::ranges::all_of(
        order, [&](Rank rank) { return ranks_ == 1 || has(rank, (rank + 1) % ranks_); });
    return is_in_order ? order : ring_through_all(ranks_, links_);
}

std::optional<Rank> LinkGraph::cut_off() const {
    for (Rank rank = 0; rank < ranks_; ++rank) {
        const bool sends = std::ranges::find(links_, rank, &DirectedLink::from) != links_.end();
        const bool receives = std::ranges::find(links_, rank, &DirectedLink::to) != links_.end();
        if (ranks_ > 1 && !(sends && receives)) return rank;
    }
    return std::nullopt;
}

std::optional<DirectedLink> LinkGraph::missing(const Program& program, Rank from) const {
    for (const Rank to : receivers_of(program))
        if (!has(from, to)) return DirectedLink{from, to};
    return std::nullopt;
}

bool LinkGraph::carries(const ScheduleSource& source, const Shape& shape,
                        const RankOrder& order) const {
    for (Rank rank = 0; rank < ranks_; ++rank) {
        const auto program = generate_program(source, shape, rank, order);
        if (!program.is_ok() || missing(*program, rank)) return false;
    }
    return true;
}

}  // namespace pccl::schedule
