// SPDX-License-Identifier: Apache-2.0

// What the links of a group allow: worked out by hand.
#include "csrc/schedule/generators/link_graph.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/source.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/link_shapes.h"

namespace pccl::schedule {
namespace {

using testing::both_ways;
using testing::Links;
using testing::torus;

TEST(LinkGraph, CountsLinksOfItsRanksOnce) {
    const LinkGraph graph(3, {{0, 1}, {0, 1}, {1, 2}, {2, 2}, {0, 3}, {-1, 0}});
    EXPECT_EQ(graph.links(), (Links{{0, 1}, {1, 2}}));
    EXPECT_TRUE(graph.has(0, 1));
    EXPECT_FALSE(graph.has(1, 0));
}

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

TEST(LinkGraph, ARingLaidAlongATorusIsRightAndSendsAlongItsLinks) {
    const LinkGraph graph(12, both_ways(torus(3, 4)));
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        const SourcePtr ring = built_in("ring", kind).value();
        const Shape shape = least_shape(*ring, 12);
        EXPECT_FALSE(graph.carries(*ring, shape, {}));
        const SourcePtr laid = laid_along(ring, graph.ring()).value();
        EXPECT_NE(laid->digest, ring->digest);
        EXPECT_TRUE(graph.carries(*laid, shape, {}));
        const RankOrder backwards{11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
        EXPECT_EQ(generate(*laid, shape, backwards)->programs, generate(*laid, shape)->programs);
        const auto verdict = verify(*generate(*laid, shape));
        ASSERT_TRUE(verdict.is_ok()) << verdict.status().to_string();
        EXPECT_EQ(verdict->rounds, verify(*generate(*ring, shape))->rounds);
    }
    EXPECT_EQ(
        laid_along(built_in("ring", CollectiveKind::kAllGather).value(), {0, 1, 1}).status().code(),
        StatusCode::kInvalidArgument);
}

TEST(LinkGraph, NamesRanksWithoutAWay) {
    EXPECT_EQ(LinkGraph(4, {{0, 1}, {1, 2}, {2, 3}, {3, 0}}).apart(), std::nullopt);
    EXPECT_EQ(LinkGraph(4, both_ways({{0, 2}, {1, 3}})).apart(), (DirectedLink{0, 1}));
    EXPECT_EQ(LinkGraph(3, {{0, 1}, {1, 2}}).apart(), (DirectedLink{1, 0}));
    EXPECT_EQ(LinkGraph(4, both_ways({{0, 2}, {1, 3}})).cut_off(), std::nullopt);
    EXPECT_EQ(LinkGraph(3, both_ways({{0, 1}})).cut_off(), Rank{2});
    EXPECT_EQ(LinkGraph(3, {{0, 1}, {1, 0}, {1, 2}}).cut_off(), Rank{2});
    EXPECT_TRUE(LinkGraph(3, both_ways({{0, 1}, {1, 2}, {0, 2}})).is_complete());
}

TEST(LinkGraph, CarriesWhatSendsAlongItsLinks) {
    const LinkGraph ring(8, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 0}});
    for (const auto& [name, is_carried] :
         {std::pair{"ring", true}, {"recursive_halving", false}, {"pat", false}}) {
        const SourcePtr source = built_in()->find(name, CollectiveKind::kAllReduce);
        ASSERT_NE(source, nullptr) << name;
        EXPECT_EQ(ring.carries(*source, least_shape(*source, 8), {}), is_carried) << name;
        const RankOrder backwards{7, 6, 5, 4, 3, 2, 1, 0};
        EXPECT_FALSE(ring.carries(*source, least_shape(*source, 8), backwards)) << name;
    }
}

TEST(LinkGraph, NamesTheFirstLinkThatIsMissing) {
    const LinkGraph graph(4, {{0, 1}, {1, 0}, {0, 3}});
    const auto sends = [](std::vector<Rank> receivers) {
        Program program{.lanes = {{}}};
        for (const Rank to : receivers)
            program.lanes[0].push_back({.action = Action::kSend, .to = {.peer = to}});
        return program;
    };
    EXPECT_EQ(graph.missing(sends({3, 1, 3}), 0), std::nullopt);
    EXPECT_EQ(graph.missing(sends({}), 2), std::nullopt);
    EXPECT_EQ(graph.missing(sends({3, 0, 2}), 1), (DirectedLink{1, 2}));
}

}  // namespace
}  // namespace pccl::schedule
