// SPDX-License-Identifier: Apache-2.0

// Groups on several hosts, without these: each rank claims to run where the test says.
#include "csrc/bootstrap/layout.h"

#include <gmock/gmock.h>

#include <memory>

#include "csrc/comm/selection/selector.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/comm/distant_hosts.h"

namespace pccl::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Messages of a ring that go to another host, over all ranks, of those of one round.
int crossings(const schedule::RankOrder& order, const std::vector<Place>& places) {
    const auto ring = schedule::built_in("ring", CollectiveKind::kAllGather).value();
    const schedule::Shape shape = schedule::least_shape(*ring, 8);
    int found = 0;
    for (Rank rank = 0; rank < 8; ++rank) {
        const auto program = generate_program(*ring, shape, rank, order);
        EXPECT_TRUE(program.is_ok());
        const Rank next = program->lanes.front().front().to.peer;
        if (places[static_cast<std::size_t>(rank)].host !=
            places[static_cast<std::size_t>(next)].host)
            ++found;
    }
    return found;
}

TEST(LayoutTest, ARingOfInterleavedRanksLeavesEachHostOnce) {
    const auto layout = bootstrap::Layout::make(roster_of(kInterleaved, 10'000));
    ASSERT_TRUE(layout.is_ok()) << layout.status().to_string();
    EXPECT_THAT((*layout)->order(), ElementsAre(0, 4, 2, 6, 1, 5, 3, 7))
        << "host by host, and on each by NUMA node";
    EXPECT_EQ(crossings((*layout)->order(), kInterleaved), 2);
    EXPECT_EQ(crossings({}, kInterleaved), 8);
}

TEST(LayoutTest, HostsOfOneSubnetFollowEachOther) {
    bootstrap::Roster roster = roster_of({{0, 0}, {1, 0}, {2, 0}}, 10'000);
    std::vector<topo::HostTopology> hosts = topo::decode_job(roster.job)->hosts();
    hosts[1].network.subnet = "10.0.1.0/24";
    roster.job = encode(*topo::JobTopology::make(hosts));
    EXPECT_THAT((*bootstrap::Layout::make(roster))->order(), ElementsAre(0, 2, 1));
}

TEST(LayoutTest, ReportsThatASchedulePassesBlocksOfOneLengthAlone) {
    const bootstrap::Roster roster = roster_of({{0, 0}, {1, 0}, {2, 0}}, 10'000);
    auto even = std::make_shared<schedule::ScheduleSource>(
        *schedule::built_in("bruck", CollectiveKind::kAllGather).value());
    even->name = "even";
    even->digest += 1;
    even->takes_uneven = false;
    auto catalogue = std::make_shared<schedule::Catalogue>();
    ASSERT_TRUE(catalogue->add(even).is_ok());
    Selector selector(roster, {.rank = 0, .layout = *bootstrap::Layout::make(roster)},
                      {.catalogue = catalogue, .wanted = "all_gather=even"});
    const std::vector<Block> outputs{{nullptr, 1}, {nullptr, 2}, {nullptr, 3}};
    const auto decision = selector.choose(
        {.kind = CollectiveKind::kAllGather, .inputs = {outputs.data(), 1}, .outputs = outputs});
    EXPECT_THAT(decision.status().message(),
                HasSubstr("even, cannot make this all_gather of blocks that differ in length; "
                          "these can: "));
}

}  // namespace
}  // namespace pccl::comm
