// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/generators/ring_search.h"

#include <algorithm>
#include <functional>
#include <utility>

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

}  // namespace

RankOrder ring_through_all(int ranks, const std::vector<DirectedLink>& links) {
    return RingSearch(ranks, links).find();
}

}  // namespace pccl::schedule
