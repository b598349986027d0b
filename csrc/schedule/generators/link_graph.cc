// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/generators/link_graph.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "csrc/schedule/generators/along_links.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {
namespace {

constexpr long long kMostWork = 10'000'000;  // links visited

class RingSearch {
   public:
    RingSearch(int ranks, const std::vector<DirectedLink>& links)
        : beyond_(static_cast<std::size_t>(ranks)),
          before_(static_cast<std::size_t>(ranks)),
          is_taken_(static_cast<std::size_t>(ranks), false) {
        for (const DirectedLink& link : links) {
            beyond_[at(link.from)].push_back(link.to);
            before_[at(link.to)].push_back(link.from);
        }
    }

    RankOrder find() {
        take(0);
        while (!path_.empty() && work_ < kMostWork) {
            if (path_.size() == beyond_.size() && leads_to(path_.back(), 0)) return path_;
            if (next_.back().empty()) {
                give_back();
                continue;
            }
            const Rank next = next_.back().back();
            next_.back().pop_back();
            take(next);
        }
        return {};
    }

   private:
    static std::size_t at(Rank rank) { return static_cast<std::size_t>(rank); }

    void take(Rank rank) {
        path_.push_back(rank);
        is_taken_[at(rank)] = true;
        next_.push_back(can_go_on() ? ways_on(rank) : std::vector<Rank>());
    }
    void give_back() {
        is_taken_[at(path_.back())] = false;
        path_.pop_back();
        next_.pop_back();
    }

    [[nodiscard]] bool is_free(Rank rank) const { return !is_taken_[at(rank)]; }
    [[nodiscard]] bool leads_to(Rank from, Rank to) const {
        return std::ranges::find(beyond_[at(from)], to) != beyond_[at(from)].end();
    }

    /// Returns the next ranks; the last one is tried first.
    std::vector<Rank> ways_on(Rank from) {
        std::vector<std::pair<std::ptrdiff_t, Rank>> found;
        for (const Rank rank : beyond_[at(from)]) {
            if (!is_free(rank)) continue;
            const auto& further = beyond_[at(rank)];
            work_ += static_cast<long long>(further.size());
            const auto free = [this](Rank other) { return is_free(other); };
            found.emplace_back(std::ranges::count_if(further, free), rank);
        }
        std::ranges::sort(found, std::greater());
        std::vector<Rank> ranks;
        ranks.reserve(found.size());
        for (const auto& [ways, rank] : found) ranks.push_back(rank);
        return ranks;
    }

    /// Returns whether all remaining ranks can be reached from the end of the path, and each can be
    /// entered and left.
    bool can_go_on() {
        if (path_.size() == beyond_.size()) return true;
        std::vector<bool> is_seen = is_taken_;
        std::size_t reached = path_.size();
        for (std::vector<Rank> front{path_.back()}; !front.empty();) {
            const Rank from = front.back();
            front.pop_back();
            work_ += static_cast<long long>(beyond_[at(from)].size());
            for (const Rank rank : beyond_[at(from)]) {
                if (is_seen[at(rank)]) continue;
                if (!can_be_passed(rank)) return false;
                is_seen[at(rank)] = true;
                ++reached;
                front.push_back(rank);
            }
        }
        return reached == beyond_.size();
    }

    bool can_be_passed(Rank rank) {
        work_ += static_cast<long long>(beyond_[at(rank)].size() + before_[at(rank)].size());
        const auto is_way_out = [this](Rank to) { return is_free(to) || to == path_.front(); };
        const auto is_way_in = [this](Rank from) { return is_free(from) || from == path_.back(); };
        return std::ranges::any_of(beyond_[at(rank)], is_way_out) &&
               std::ranges::any_of(before_[at(rank)], is_way_in);
    }

    std::vector<std::vector<Rank>> beyond_;  // by rank: ranks to which it has a link
    std::vector<std::vector<Rank>> before_;  // by rank: ranks that have a link to it
    std::vector<bool> is_taken_;
    RankOrder path_;
    std::vector<std::vector<Rank>> next_;  // by position: ranks that were not tried yet
    long long work_ = 0;
};

/// Returns ranks by position, rank 0 first; deterministic for given links. Tries the ranks with the
/// fewest onward links first (Warnsdorff's rule) and backtracks when a rank can no longer be
/// reached or left. Empty if there is no ring, or none within about 10^7 steps; a torus takes a few
/// more steps than it has ranks.
RankOrder ring_through_all(int ranks, const std::vector<DirectedLink>& links) {
    return RingSearch(ranks, links).find();
}

}  // namespace

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
