// SPDX-License-Identifier: Apache-2.0

// Ranks of one host follow the ring of their GPUs.
#include "csrc/bootstrap/locality.h"

#include <gmock/gmock.h>

#include <algorithm>

#include "tests/cpp/comm/distant_hosts.h"
#include "tests/fakes/places.h"

namespace pccl::comm {
namespace {

using ::testing::SizeIs;

/// GPUs behind one CPU, one rank each, of which the first two say that they use the same.
TEST(LayoutTest, RanksFollowTheRingOfTheirGpus) {
    const auto machine =
        topo::Topology::load(fakes::in_tests("data/topology/nccl/dgx1v_cubemesh.xml"), {});
    ASSERT_TRUE(machine.is_ok()) << machine.status().to_string();
    bootstrap::Roster roster;
    bootstrap::Locality locality{.machine = "dgx", .host = "dgx", .topology = *machine};
    std::vector<Rank> ranks;
    for (const int gpu : machine->graph().gpus()) {
        bootstrap::Endpoint endpoint;
        endpoint.rank = static_cast<Rank>(ranks.size());
        endpoint.machine = "dgx";
        endpoint.gpu = machine->graph().node(gpu).label;
        ranks.push_back(endpoint.rank);
        roster.endpoints.push_back(endpoint);
    }
    const auto job_of = [&] {
        return *topo::JobTopology::make({*bootstrap::host_of_ranks(locality, roster, ranks)});
    };
    const auto ring = topo::search(*machine, {});
    ASSERT_TRUE(ring.is_ok());
    EXPECT_EQ(*job_of().order(), ring->channels.front().order);
    roster.endpoints[1].gpu = roster.endpoints[0].gpu;
    const topo::JobTopology shared = job_of();
    EXPECT_TRUE(std::ranges::any_of(shared.warnings(), [](const topo::Warning& warning) {
        return warning.name == "shared_gpu";
    }));
    EXPECT_THAT(*shared.order(), SizeIs(8));
}

TEST(LayoutTest, RanksBesideOneAreThoseOfItsHost) {
    const bootstrap::Roster roster = roster_of({{0, 0}, {1, 0}, {0, 1}, {0, 0}}, 10'000);
    EXPECT_EQ(bootstrap::ranks_beside(roster, 0), 3);
    EXPECT_EQ(bootstrap::ranks_beside(roster, 1), 1);
}

TEST(LayoutTest, RanksShareTheCoresThatTheyHaveInCommon) {
    bootstrap::Roster roster = roster_of({{0, 0}, {0, 0}, {0, 0}, {1, 0}}, 10'000);
    for (bootstrap::Endpoint& endpoint : roster.endpoints) endpoint.cores = 8;
    roster.endpoints[2].core_set = 1;  // of another NUMA node
    EXPECT_EQ(bootstrap::core_share(roster, 0), 4);
    EXPECT_EQ(bootstrap::core_share(roster, 2), 8);
    EXPECT_EQ(bootstrap::core_share(roster, 3), 8);
    EXPECT_EQ(bootstrap::least_threads(roster), 4);
    roster.endpoints[3].cores = 1;
    EXPECT_EQ(bootstrap::least_threads(roster), 1);
    roster.endpoints[3].tcp_threads = 5;
    EXPECT_EQ(bootstrap::least_threads(roster), 4) << "a setting counts instead of the cores";
    roster.endpoints[0].tcp_threads = 0;
    EXPECT_EQ(bootstrap::least_threads(roster), 1);
}

}  // namespace
}  // namespace pccl::comm
