// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <algorithm>

#include "csrc/schedule/generators/link_graph.h"
#include "tests/cpp/schedule/link_shapes.h"

namespace pccl::schedule {
namespace {

using testing::both_ways;
using testing::Links;
using testing::torus;

TEST(LinkGraph, FindsRings) {
    EXPECT_TRUE(LinkGraph(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}).has_ring());
    EXPECT_TRUE(LinkGraph(4, {{0, 2}, {2, 1}, {1, 3}, {3, 0}}).has_ring());
    EXPECT_TRUE(LinkGraph(4, both_ways({{0, 2}, {2, 1}, {1, 3}, {3, 0}})).has_ring());
    EXPECT_TRUE(LinkGraph(2, both_ways({{0, 1}})).has_ring());
    EXPECT_FALSE(LinkGraph(4, both_ways({{0, 1}, {0, 2}, {1, 3}})).has_ring());
    EXPECT_FALSE(LinkGraph(4, both_ways({{0, 2}, {1, 3}})).has_ring());
    EXPECT_FALSE(LinkGraph(6, {{0, 1}, {1, 2}, {2, 0}, {3, 4}, {4, 5}, {5, 3}}).has_ring());
}

bool is_ring_of(const LinkGraph& graph, const RankOrder& order) {
    RankOrder sorted = order;
    std::ranges::sort(sorted);
    for (Rank rank = 0; rank < graph.ranks(); ++rank)
        if (sorted.size() != static_cast<std::size_t>(graph.ranks()) ||
            sorted[static_cast<std::size_t>(rank)] != rank ||
            !graph.has(order[static_cast<std::size_t>(rank)],
                       order[static_cast<std::size_t>((rank + 1) % graph.ranks())]))
            return false;
    return true;
}

TEST(LinkGraph, FindsARingInATorus) {
    for (const auto& [rows, columns] :
         {std::pair{3, 3}, {3, 4}, {4, 4}, {5, 7}, {8, 8}, {9, 11}, {16, 16}}) {
        const LinkGraph graph(rows * columns, both_ways(torus(rows, columns)));
        EXPECT_TRUE(is_ring_of(graph, graph.ring())) << rows << " x " << columns;
    }
}

/// Trotter and Erdos, "When the Cartesian product of directed cycles is Hamiltonian", J. Graph
/// Theory 2, 1978: it is where d = gcd(a, b) >= 2 is a sum of two numbers prime to a and to b.
TEST(LinkGraph, FindsARingInAOneWayTorusWhereThereIsOne) {
    for (const auto& [rows, columns] : {std::pair{3, 3}, {4, 4}, {6, 4}, {3, 6}, {5, 5}}) {
        const LinkGraph graph(rows * columns, torus(rows, columns));
        EXPECT_TRUE(is_ring_of(graph, graph.ring())) << rows << " x " << columns;
    }
    for (const auto& [rows, columns] : {std::pair{2, 3}, {3, 4}, {2, 5}})
        EXPECT_FALSE(LinkGraph(rows * columns, torus(rows, columns)).has_ring());
}

TEST(LinkGraph, GivesUpOnARingWhereOneRankJoinsTwoHalves) {
    Links links;
    for (Rank from = 0; from < 41; ++from)
        for (Rank to = 0; to < 41; ++to)
            if (from != to && (from == 20 || to == 20 || (from < 20) == (to < 20)))
                links.push_back({from, to});
    EXPECT_FALSE(LinkGraph(41, links).has_ring());
}

}  // namespace
}  // namespace pccl::schedule
