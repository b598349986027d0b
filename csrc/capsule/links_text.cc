// SPDX-License-Identifier: Apache-2.0
#include "csrc/capsule/links_text.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "csrc/base/text.h"
#include "csrc/capsule/limits.h"
#include "csrc/schedule/receivers.h"

namespace pccl::capsule {
namespace {

using schedule::Schedule;

/// Receivers of each rank, ascending.
using Receivers = std::vector<std::vector<Rank>>;

Receivers receivers_in(const Schedule& schedule) {
    Receivers all;
    for (const schedule::Program& program : schedule.programs)
        all.push_back(schedule::receivers_of(program));
    return all;
}

/// Returns whether every rank sends to rank 0's receivers, shifted by `seen_from`.
template <typename SeenFrom>
bool follow_from_first(const Receivers& all, const SeenFrom& seen_from) {
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
        if (all[rank].size() != all.front().size()) return false;
        for (const Rank receiver : all.front())
            if (!std::ranges::binary_search(all[rank],
                                            seen_from(static_cast<Rank>(rank), receiver)))
                return false;
    }
    return true;
}

void add(std::string& text, const std::string& word) {
    text += concat(text.empty() ? "" : " ", word);
}

std::string distances(const std::vector<Rank>& receivers, int ranks) {
    std::string text;
    for (const Rank each : receivers)
        add(text, each <= ranks / 2 ? concat("+", each) : concat("-", ranks - each));
    return text;
}

std::string bits(const std::vector<Rank>& receivers) {
    std::string text;
    for (const Rank each : receivers) add(text, concat("^", each));
    return text;
}

std::string pairs(const Receivers& all) {
    std::string text;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
        for (const Rank each : all[rank]) add(text, concat(rank, "->", each));
    return text;
}

}  // namespace

std::string links_text(const Schedule& schedule) {
    if (!schedule.phases.empty()) return {};
    const Receivers all = receivers_in(schedule);
    const auto ranks = static_cast<Rank>(all.size());
    std::size_t links = 0;
    for (const std::vector<Rank>& receivers : all) links += receivers.size();
    if (links == all.size() * (all.size() - 1)) return {};
    const std::vector<Rank>& first = all.front();
    if (first.size() <= kMostListedLinks) {
        if (follow_from_first(all, [&](Rank rank, Rank far) { return (rank + far) % ranks; }))
            return distances(first, ranks);
        if (std::has_single_bit(all.size()) &&
            follow_from_first(all, [](Rank rank, Rank far) { return rank ^ far; }))
            return bits(first);
    }
    return links <= kMostListedLinks ? pairs(all) : concat(links, " links");
}

}  // namespace pccl::capsule
