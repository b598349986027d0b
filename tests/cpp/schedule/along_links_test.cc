// SPDX-License-Identifier: Apache-2.0

// Collectives over networks where not all ranks are neighbours.
#include "csrc/schedule/generators/along_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/link_shapes.h"

namespace pccl::schedule {
namespace {

using testing::both_ways;
using testing::Links;
using testing::torus;

struct Net {
    std::string name;
    int ranks;
    Links links;
    int longest;  // way between two ranks
};

Links ring(int ranks) {
    Links links;
    for (Rank rank = 0; rank < ranks; ++rank) links.push_back({rank, (rank + 1) % ranks});
    return links;
}

Links mesh(int ranks) {
    Links links;
    for (Rank from = 0; from < ranks; ++from)
        for (Rank to = 0; to < ranks; ++to)
            if (from != to) links.push_back({from, to});
    return links;
}

Links star(int ranks) {
    Links links;
    for (Rank rank = 1; rank < ranks; ++rank) links.push_back({0, rank});
    return both_ways(links);
}

Links hypercube(int dimensions) {
    Links links;
    for (Rank rank = 0; rank < 1 << dimensions; ++rank)
        for (int d = 0; d < dimensions; ++d) links.push_back({rank, rank ^ (1 << d)});
    return links;
}

/// A one-way ring, so that all ways exist, and links at random.
Links random_links(int ranks, unsigned seed) {
    std::mt19937 random(seed);
    Links links = ring(ranks);
    for (int i = 0; i < ranks; ++i) {
        const Rank from = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
        const Rank to = static_cast<Rank>(random() % static_cast<unsigned>(ranks));
        if (from != to) links.push_back({from, to});
    }
    return links;
}

std::vector<Net> networks() {
    std::vector<Net> all{
        {"one_way_ring", 6, ring(6), 5},
        {"ring", 7, both_ways(ring(7)), 3},
        {"two", 2, mesh(2), 1},
        {"mesh", 6, mesh(6), 1},
        {"star", 6, star(6), 2},
        {"hypercube", 8, hypercube(3), 3},
        {"torus", 12, both_ways(torus(3, 4)), 3},
    };
    for (unsigned seed = 1; seed <= 20; ++seed)
        all.push_back({"random" + std::to_string(seed), 3 + static_cast<int>(seed) % 9,
                       random_links(3 + static_cast<int>(seed) % 9, seed), 0});
    return all;
}

class AlongLinksTest : public ::testing::TestWithParam<Net> {
   protected:
    static std::vector<SourcePtr> sources() {
        return *along_links("circuits", GetParam().ranks, GetParam().links);
    }
};

TEST_P(AlongLinksTest, IsRightAndUsesNoOtherLinks) {
    const std::set<DirectedLink> links(GetParam().links.begin(), GetParam().links.end());
    for (const SourcePtr& source : sources())
        for (Rank root = 0; root < testing::roots(source, GetParam().ranks); ++root) {
            SCOPED_TRACE(std::string(to_string(source->kind)) + " from " + std::to_string(root));
            const auto schedule = generate(*source, least_shape(*source, GetParam().ranks, root));
            ASSERT_TRUE(schedule.is_ok()) << schedule.status().to_string();
            for (const Placement placement : testing::placements(source->kind)) {
                const auto verdict = verify(*schedule, placement);
                ASSERT_TRUE(verdict.is_ok()) << verdict.status().to_string();
                EXPECT_TRUE(verdict->bit_identical);
                EXPECT_EQ(verdict->takes_uneven, source->takes_uneven);
            }
            for (Rank rank = 0; rank < GetParam().ranks; ++rank)
                for (const Lane& lane : schedule->programs[static_cast<std::size_t>(rank)].lanes)
                    for (const Step& step : lane)
                        if (step.to.is_used()) {
                            EXPECT_TRUE(links.contains({rank, step.to.peer}));
                        }
        }
}

TEST_P(AlongLinksTest, NoWayIsLongerThanTheShortest) {
    if (GetParam().longest == 0) return;
    for (const SourcePtr& source : sources()) {
        const int phases = source->kind == CollectiveKind::kAllReduce ? 2 : 1;
        const Shape shape = least_shape(*source, GetParam().ranks);
        EXPECT_EQ(source->cost(shape, 1).rounds, phases * GetParam().longest);
        const int rounds = verify(*generate(*source, shape), Placement::kOutOfPlace)->rounds;
        EXPECT_LE(rounds, phases * GetParam().longest) << to_string(source->kind);
        // From or to one root it may be nearer.
        if (!is_rooted(source->kind)) {
            EXPECT_EQ(rounds, phases * GetParam().longest) << to_string(source->kind);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Networks, AlongLinksTest, ::testing::ValuesIn(networks()),
                         [](const auto& net) { return net.param.name; });

/// The optimum of any all_gather on a ring: every block crosses all links but one.
TEST(AlongLinksTest, OnAOneWayRingItIsTheRing) {
    const auto sources = *along_links("circuits", 8, ring(8));
    for (const SourcePtr& source : sources) {
        if (source->kind != CollectiveKind::kAllGather) continue;
        const Cost own = source->cost(least_shape(*source, 8), 1);
        const SourcePtr ring_source = built_in("ring", CollectiveKind::kAllGather).value();
        const Cost known = ring_source->cost(least_shape(*ring_source, 8), 1);
        EXPECT_EQ(own.rounds, known.rounds);
        EXPECT_EQ(own.messages, known.messages);
        EXPECT_EQ(own.bytes_sent, known.bytes_sent);
    }
}

TEST(AlongLinksTest, NamesRanksWithoutAWay) {
    const auto cut = along_links("circuits", 4, {{0, 1}, {1, 0}, {2, 3}, {3, 2}});
    EXPECT_EQ(cut.status().message(), "rank 0 has no way to rank 2 along the links");
    const auto nowhere = along_links("circuits", 4, {{0, 4}});
    EXPECT_EQ(nowhere.status().message(),
              "a link from 0 to 4: they must be two of the ranks 0 to 3");
    const auto self = along_links("circuits", 4, {{1, 1}});
    EXPECT_EQ(self.status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pccl::schedule
