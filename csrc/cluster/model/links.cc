// SPDX-License-Identifier: Apache-2.0
#include <pccl/phases.h>
#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"

namespace pccl::cluster {
namespace {

constexpr std::size_t kMostLinksShown = 16;

}  // namespace

std::vector<RankLink> ring_of(int ranks) {
    std::vector<RankLink> links;
    for (Rank i = 0; ranks > 1 && i < ranks; ++i) links.push_back({i, (i + 1) % ranks});
    return links;
}

std::vector<RankLink> both_ways(const std::vector<RankLink>& links) {
    std::vector<RankLink> both;
    both.reserve(2 * links.size());
    for (const RankLink& link : links) {
        both.push_back(link);
        both.push_back({link.to, link.from});
    }
    return both;
}

std::string to_string(const std::vector<RankLink>& links) {
    if (links.empty()) return "none";
    return some_of(links, kMostLinksShown,
                   [](const RankLink& link) { return concat(link.from, " -> ", link.to); });
}

}  // namespace pccl::cluster
