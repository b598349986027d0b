// SPDX-License-Identifier: Apache-2.0

// Predicted times, and the choices that follow from them, for groups on several hosts and cores.
#include "csrc/costs/model/predictor.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/comm/selection/imagined_group.h"
#include "csrc/comm/selection/selector.h"
#include "tests/cpp/comm/distant_hosts.h"

namespace pccl::comm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<Prediction> predicted(const std::vector<Place>& places, int megabits) {
    const bootstrap::Roster roster = roster_of(places, megabits);
    Selector selector(roster, {.rank = 0, .layout = *bootstrap::Layout::make(roster)}, {});
    auto ways = selector.explain(CollectiveKind::kAllReduce, 64 * kMiB);
    EXPECT_TRUE(ways.is_ok()) << ways.status().to_string();
    return *std::move(ways);
}

double seconds_by(std::string_view algorithm, const std::vector<Prediction>& ways) {
    for (const Prediction& way : ways)
        if (way.algorithm() == algorithm) return way.seconds;
    return -1;
}

TEST(LayoutTest, PredictionsFollowTheDeclaredSpeedOfTheNetwork) {
    // 2 * 7/8 of 64 MiB leave each host: all the rest takes less time than the slow network.
    const double bytes = 2.0 * 7 / 8 * 64 * kMiB;
    const double slow = seconds_by("ring", predicted(kInterleaved, 1'000));
    EXPECT_NEAR(slow, bytes / 0.125e9, 0.1 * slow);
    const double fast = seconds_by("ring", predicted(kInterleaved, 100'000));
    EXPECT_LT(fast, slow / 5);
    const auto ways = predicted(kInterleaved, 1'000);
    EXPECT_EQ(ways.front().algorithm(), "hierarchical") << "that sends least over the network";
    EXPECT_NEAR(ways.front().seconds, 64 * kMiB / 0.125e9, 0.1 * slow);
    EXPECT_EQ(ways.front().busiest, "eth0 of node0, 0.125 GB/s");
}

/// Ranks that wait for several others in turn drift apart: of 64 MiB all of these send as much.
TEST(LayoutTest, BetweenHostsARingIsTakenBeforeExchangesOfAsManyBytesWithMoreOfThem) {
    const auto ways = predicted({{0, 0}, {1, 0}, {2, 0}, {3, 0}}, 200);
    EXPECT_EQ(ways.front().algorithm(), "ring");
    EXPECT_TRUE(ways.front().is_chosen);
    const double ring = ways.front().seconds;
    const double halving = seconds_by("recursive_halving", ways);
    EXPECT_GT(halving, 1.03 * ring);
    EXPECT_GT(seconds_by("two_shot", ways), halving);
    EXPECT_LT(seconds_by("two_shot", ways), 1.1 * ring);
}

/// Of an all_reduce between 4 ranks on each of two hosts with so many cores.
std::vector<Prediction> predicted_on_cores(int cores, std::size_t bytes) {
    const auto costs = costs::MachineCosts::parse(
        "cores " + std::to_string(cores) + "\ntcp_round 4.07\ntcp_message 4.17\ntcp_byte 0.19\n");
    const bootstrap::Roster roster = roster_of(hosts_of_four(2), 10'000);
    Selector selector(roster, {.rank = 0, .layout = *bootstrap::Layout::make(roster)},
                      {.costs = costs.value()});
    return selector.explain(CollectiveKind::kAllReduce, bytes).value();
}

/// On two cores doubling took 97 us of 16 KiB, halving 21.4 ms of 16 MiB, and the hierarchical way,
/// which was predicted to take up to 8 % less than that, 193 us and 23.5 ms.
TEST(LayoutTest, BetweenHostsFewMessagesAreChosenWhereRanksShareCores) {
    for (const std::size_t bytes : {16 * kKiB, 1 * kMiB, 16 * kMiB}) {
        const auto ways = predicted_on_cores(2, bytes);
        const auto chosen = std::ranges::find(ways, true, &Prediction::is_chosen);
        ASSERT_NE(chosen, ways.end());
        EXPECT_NE(chosen->algorithm(), "hierarchical") << bytes;
        for (const Prediction& way : ways)
            EXPECT_TRUE(way.seconds > 1.1 * ways.front().seconds ||
                        chosen->messages <= way.messages)
                << way.algorithm();
        EXPECT_TRUE(predicted_on_cores(4, bytes).front().is_chosen) << bytes;
    }
}

TEST(LayoutTest, PatIsFasterWhereNoRankShouldSendAllItHasToAnotherHost) {
    const auto fast = predicted(hosts_of_four(4), 100'000);
    EXPECT_LT(seconds_by("pat", fast), seconds_by("ring", fast));
    const auto slow = predicted(hosts_of_four(4), 1'000);
    EXPECT_LT(seconds_by("ring", slow), seconds_by("pat", slow));
}

TEST(LayoutTest, PatIsNotChosenWhereHalvingOrDoublingSendsNoMore) {
    for (const int ranks : {2, 4, 8, 16, 32}) {
        bootstrap::Roster roster;
        roster.endpoints.resize(static_cast<std::size_t>(ranks));
        Selector selector(roster, {.rank = 0, .layout = *bootstrap::Layout::make(roster)}, {});
        for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                          CollectiveKind::kReduceScatter})
            // Longer messages of halving and doubling are cut into more windows than PAT's.
            for (const std::size_t bytes : {std::size_t{0}, std::size_t{100}, 4 * kKiB})
                EXPECT_NE(selector.explain(kind, bytes)->front().algorithm(), "pat")
                    << ranks << " ranks, " << schedule::to_string(kind) << " of " << bytes;
    }
}

/// Messages that rank 0 sends in a reduce_scatter of 16 hosts, `of_lengths` of its blocks.
long long messages_of_sums(const std::function<std::size_t(Rank)>& of_length) {
    std::vector<Place> places;
    std::vector<Block> inputs;
    for (int host = 0; host < 16; ++host) {
        places.push_back({host, 0});
        inputs.push_back({nullptr, of_length(host)});
    }
    const bootstrap::Roster roster = roster_of(places, 10'000);
    Selector selector(roster, {.rank = 0, .layout = *bootstrap::Layout::make(roster)}, {});
    const auto decision = selector.choose({.kind = CollectiveKind::kReduceScatter,
                                           .type = DataType::kInt32,
                                           .inputs = inputs,
                                           .outputs = {inputs.data(), 1}});
    EXPECT_TRUE(decision.is_ok()) << decision.status().to_string();
    long long sent = 0;
    for (const auto& lane : (*decision)->program->lanes)
        sent += std::ranges::count_if(lane, [](const LinkStep& s) { return s.to != kNoPort; });
    return sent;
}

TEST(LayoutTest, SumsOfBlocksOfAnyLengthsTakeFewMessages) {
    EXPECT_EQ(messages_of_sums([](Rank) { return 100; }), 4) << "log2 16";
    EXPECT_EQ(messages_of_sums([](Rank rank) { return rank * 37 % 200; }), 4);
    EXPECT_EQ(messages_of_sums([](Rank rank) { return rank == 5 ? 100 : 0; }), 4);
}

TEST(LayoutTest, NamesTheLinksThatItCountsOn) {
    const auto layout = *bootstrap::Layout::make(roster_of(kInterleaved, 25'000));
    EXPECT_THAT(layout->describe_links(), ElementsAre("eth0 of node0: 3.125 GB/s, declared",
                                                      "eth0 of node1: 3.125 GB/s, declared"));
    bootstrap::Roster alone;
    alone.endpoints.resize(2);
    EXPECT_THAT(
        (*bootstrap::Layout::make(alone))->describe_links(),
        ElementsAre("memory of one host: built-in figures (pccl topo --measure measures it)"));
}

TEST(LayoutTest, MeasuredTimesCountMoreThanConstants) {
    bootstrap::Roster roster = roster_of({{0, 0}, {0, 1}}, 10'000);
    const double usual =
        costs::link_model(costs::reach_of(roster, {}), **bootstrap::Layout::make(roster), {})
            .near.seconds_per_byte;
    std::vector<topo::HostTopology> hosts = topo::decode_job(roster.job)->hosts();
    hosts[0].calibration = *topo::Calibration::parse("memory 0 0 1 20\nmemory 0 1 6 2\n");
    roster.job = encode(*topo::JobTopology::make(hosts));
    const costs::LinkModel model =
        costs::link_model(costs::reach_of(roster, {}), **bootstrap::Layout::make(roster), {});
    EXPECT_NE(model.near.seconds_per_byte, usual);
    EXPECT_NEAR(model.near.seconds_per_byte, 0.5e-9, 1e-12) << "between the NUMA nodes";
    EXPECT_NEAR(model.near.round_seconds + model.near.message_seconds, 6e-6, 1e-12);
}

/// `pccl topo --measure` that finds what the costs say must not change what a host's ranks choose.
TEST(LayoutTest, MeasuredMemoryIsComparedWithSharedMemoryAsUsualTimesAre) {
    const auto explained = [](std::shared_ptr<const bootstrap::Layout> layout, CollectiveKind kind,
                              std::size_t bytes) {
        Selector selector(
            0,
            {.reach =
                 {.ranks = 4, .is_on_one_host = true, .shares_memory = true, .most_on_a_host = 4},
             .segment = costs::ShmShape{.ranks = 4, .buffer_bytes = kMiB, .part_bytes = kMiB / 4},
             .layout = std::move(layout)},
            {});
        return *selector.explain(kind, bytes);
    };
    const auto usual = *bootstrap::Layout::make(4, "");
    const costs::LinkCost near =
        costs::link_model(
            {.ranks = 4, .is_on_one_host = true, .shares_memory = true, .most_on_a_host = 4},
            *usual, {})
            .near;
    bootstrap::Roster roster = roster_of({{0, 0}, {0, 0}, {0, 0}, {0, 0}}, 10'000);
    std::vector<topo::HostTopology> hosts = topo::decode_job(roster.job)->hosts();
    hosts[0].calibration = *topo::Calibration::parse(
        concat("memory 0 0 ", (near.round_seconds + near.message_seconds) * 1e6, " ",
               1e-9 / near.seconds_per_byte, "\n"));
    roster.job = encode(*topo::JobTopology::make(hosts));
    const auto measured = *bootstrap::Layout::make(roster);
    ASSERT_NE(measured->links(), nullptr);
    for (const CollectiveKind kind : {CollectiveKind::kAllReduce, CollectiveKind::kAllGather,
                                      CollectiveKind::kBroadcast, CollectiveKind::kReduceScatter})
        for (const std::size_t bytes : {std::size_t{0}, 4 * kKiB, 256 * kKiB, 16 * kMiB}) {
            const auto found = explained(measured, kind, bytes);
            for (const Prediction& way : explained(usual, kind, bytes)) {
                const auto same = std::ranges::find(found, way.algorithm(), &Prediction::algorithm);
                ASSERT_NE(same, found.end());
                EXPECT_NEAR(same->seconds, way.seconds, 2e-3 * way.seconds)
                    << schedule::to_string(kind) << " of " << bytes << " by " << way.algorithm();
                EXPECT_EQ(same->is_chosen, way.is_chosen);
            }
        }
}

TEST(LayoutTest, RanksOfACoreTakeTurnsOnLinks) {
    const bootstrap::Roster roster = roster_of({{0, 0}, {0, 0}, {0, 0}, {0, 0}}, 10'000);
    const auto layout = *bootstrap::Layout::make(roster);
    const auto model_with = [&](const std::string& text) {
        const auto costs = costs::MachineCosts::parse(text).value();
        return costs::link_model(costs::reach_of(roster, costs), *layout, costs);
    };
    const costs::LinkModel alone = model_with("shared_core_beat 40\ncores 4\n");
    const costs::LinkModel crowded = model_with("shared_core_beat 40\ncores 2\n");
    EXPECT_DOUBLE_EQ(crowded.near.seconds_per_byte, 2 * alone.near.seconds_per_byte);
    EXPECT_DOUBLE_EQ(crowded.far.seconds_per_byte, 2 * alone.far.seconds_per_byte);
    EXPECT_DOUBLE_EQ(crowded.far.message_seconds, 2 * (alone.far.message_seconds + 20e-6))
        << "whoever is sent to has slept";
    EXPECT_DOUBLE_EQ(crowded.far.round_seconds, 40e-6) << "each rank of a core is woken";
    EXPECT_EQ(model_with("").near.seconds_per_byte, alone.near.seconds_per_byte)
        << "how many cores there are is not known";
    EXPECT_DOUBLE_EQ(crowded.near.round_seconds, 40e-6);
    EXPECT_DOUBLE_EQ(crowded.near.message_seconds, 2 * alone.near.message_seconds)
        << "they yield to each other";
}

TEST(LayoutTest, RanksOfACoreSleepWhereSomeWaitForOtherHosts) {
    const bootstrap::Roster roster =
        roster_of({{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {1, 0}, {1, 0}, {1, 0}}, 10'000);
    const auto layout = *bootstrap::Layout::make(roster);
    const auto costs = costs::MachineCosts::parse("shared_core_beat 40\ncores 2\n").value();
    const costs::Reach reach = costs::reach_of(roster, costs);
    EXPECT_EQ(reach.ranks_on_core, 2);
    const costs::LinkModel model = costs::link_model(reach, *layout, costs);
    EXPECT_DOUBLE_EQ(model.near.round_seconds, 40e-6);
    EXPECT_GT(model.near.message_seconds, 40e-6);
    Selector selector(roster, {.rank = 0, .layout = layout}, {.costs = costs});
    const auto chosen = [&](std::size_t bytes) {
        const auto ways = selector.explain(CollectiveKind::kAllReduce, bytes).value();
        return std::string(std::ranges::find(ways, true, &Prediction::is_chosen)->algorithm());
    };
    EXPECT_EQ(chosen(1 * kKiB), "recursive_doubling") << "few rounds";
    EXPECT_EQ(chosen(4 * kMiB), "hierarchical") << "few bytes between hosts";
}

/// A roster of hosts of which all but the first have timed their way to that.
bootstrap::Roster timed(const std::vector<Place>& places, const std::vector<double>& microseconds) {
    bootstrap::Roster roster = roster_of(places, 10'000);
    std::vector<topo::HostTopology> hosts = topo::decode_job(roster.job)->hosts();
    for (std::size_t host = 1; host < hosts.size(); ++host)
        hosts[host].way = topo::HostWay{.to = "node0",
                                        .date = "2026-11-27T08:00:00Z",
                                        .round = microseconds[host - 1] * 1e-6,
                                        .message = 2e-6,
                                        .byte = 1e-9};
    roster.job = encode(*topo::JobTopology::make(hosts));
    return roster;
}

TEST(LayoutTest, TheSlowestWayBetweenHostsCountsMoreThanLoopback) {
    const bootstrap::Roster roster = timed({{0, 0}, {1, 0}, {2, 0}}, {900, 30});
    const auto layout = *bootstrap::Layout::make(roster);
    const auto costs =
        costs::MachineCosts::parse("date d\ntcp_round 11\ntcp_message 3\ntcp_byte 0.3\n").value();
    const costs::LinkModel model =
        costs::link_model(costs::reach_of(roster, costs), *layout, costs);
    EXPECT_NEAR(model.far.message_seconds, 900e-6, 1e-5 * 900e-6);
    EXPECT_NEAR(model.far.round_seconds, 2e-6, 1e-5 * 2e-6);
    EXPECT_NEAR(model.far.seconds_per_byte, 1e-9, 1e-5 * 1e-9);
    EXPECT_EQ(costs::counted_on(*layout, costs).costs_from,
              "measured d, load 0, on a busy machine; between hosts TCP takes 900 us and 1 ns a "
              "byte, measured 2026-11-27T08:00:00Z, the slowest of 2 ways to node0");
    const bootstrap::Roster untimed = roster_of({{0, 0}, {1, 0}}, 10'000);
    const auto plain = *bootstrap::Layout::make(untimed);
    EXPECT_NEAR(
        costs::link_model(costs::reach_of(untimed, costs), *plain, costs).far.message_seconds,
        11e-6, 1e-5 * 11e-6);
    EXPECT_THAT(costs::counted_on(*plain, costs).costs_from,
                HasSubstr("; between hosts TCP as on loopback"));
}

std::vector<Place> one_rank_each(int hosts) {
    std::vector<Place> places;
    for (int host = 0; host < hosts; ++host) places.push_back({host, 0});
    return places;
}

TEST(LayoutTest, AFarHostIsReachedInFewerRounds) {
    const auto messages_of_chosen = [](double microseconds) {
        const bootstrap::Roster roster =
            timed(one_rank_each(8), std::vector<double>(7, microseconds));
        const auto costs = costs::MachineCosts::parse("beat 0.1\n").value();
        Selector selector(roster, {.rank = 0, .layout = *bootstrap::Layout::make(roster)},
                          {.costs = costs});
        const auto ways = selector.explain(CollectiveKind::kAllReduce, 64 * kKiB).value();
        return std::ranges::find(ways, true, &Prediction::is_chosen)->messages;
    };
    EXPECT_LT(messages_of_chosen(5000), messages_of_chosen(5));
}

/// The last of a chain of 8 hosts has a short message after seven ways, that of a tree after three;
/// and who sends it to all of them is through in half the time of a way.
TEST(LayoutTest, RootsOfManyHostsSendShortMessagesToSeveralAndLongOnesAlongAChain) {
    const auto chosen = [](int hosts, CollectiveKind kind, std::size_t bytes) {
        const bootstrap::Roster roster = timed(
            one_rank_each(hosts), std::vector<double>(static_cast<std::size_t>(hosts) - 1, 30));
        Selector selector(roster, {.rank = 0, .layout = *bootstrap::Layout::make(roster)},
                          {.costs = costs::MachineCosts::parse("beat 0.1\n").value()});
        const auto ways = selector.explain(kind, bytes).value();
        return std::string(std::ranges::find(ways, true, &Prediction::is_chosen)->algorithm());
    };
    for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
        EXPECT_EQ(chosen(8, kind, kKiB), "one_shot");
        EXPECT_EQ(chosen(32, kind, kKiB), "binomial");
        EXPECT_EQ(chosen(32, kind, 4 * kKiB), "binomial");
        EXPECT_EQ(chosen(8, kind, 64 * kMiB), "ring");
    }
}

TEST(LayoutTest, MeasuredNetworksCountMoreThanDeclaredOnes) {
    bootstrap::Roster roster = roster_of(kInterleaved, 10'000);
    const costs::LinkModel usual =
        costs::link_model(costs::reach_of(roster, {}), **bootstrap::Layout::make(roster), {});
    std::vector<topo::HostTopology> hosts = topo::decode_job(roster.job)->hosts();
    hosts[0].calibration = *topo::Calibration::parse("network eth0 node1 58 2.5\n");
    hosts[1].calibration =
        *topo::Calibration::parse("network eth0 node0 29 2\nnetwork eth1 node0 1 9\n");
    roster.job = encode(*topo::JobTopology::make(hosts));
    const auto layout = *bootstrap::Layout::make(roster);
    EXPECT_THAT(layout->describe_links(),
                ElementsAre("eth0 of node0: 2 GB/s, measured", "eth0 of node1: 2 GB/s, measured"));
    const topo::HostLink link = layout->links()->job().link_between(0, 1);
    EXPECT_EQ(link.bandwidth, 2) << "the slower of what both found, though 1.25 are declared";
    EXPECT_NEAR(link.latency, 58e-6, 1e-12);
    const costs::LinkModel model = costs::link_model(costs::reach_of(roster, {}), *layout, {});
    EXPECT_NEAR(model.far.round_seconds + model.far.message_seconds, 58e-6, 1e-12);
    EXPECT_EQ(model.far.seconds_per_byte, usual.far.seconds_per_byte)
        << "what a rank can send is another matter than what the network carries";
    Selector selector(roster, {.rank = 0, .layout = layout}, {});
    const auto ways = *selector.explain(CollectiveKind::kAllReduce, 64 * kMiB);
    EXPECT_EQ(ways.front().busiest, "eth0 of node0, 2 GB/s");
}

}  // namespace
}  // namespace pccl::comm
