// SPDX-License-Identifier: Apache-2.0

// What the links of a group allow: worked out by hand.
#include "csrc/schedule/generators/link_graph.h"

#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/schedule/link_shapes.h"

namespace pccl::schedule {
namespace {

using testing::both_ways;
using testing::Links;

TEST(LinkGraph, CountsLinksOfItsRanksOnce) {
    const LinkGraph graph(3, {{0, 1}, {0, 1}, {1, 2}, {2, 2}, {0, 3}, {-1, 0}});
    EXPECT_EQ(graph.links(), (Links{{0, 1}, {1, 2}}));
    EXPECT_TRUE(graph.has(0, 1));
    EXPECT_FALSE(graph.has(1, 0));
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
