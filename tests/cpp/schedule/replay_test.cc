// SPDX-License-Identifier: Apache-2.0

// Schedules that are played through, against the closed forms of the literature. All numbers are
// sums of few powers of two, so that both are exact.
#include "csrc/schedule/simulator/replay.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/verified_source.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::schedule {
namespace {

constexpr double kAlpha = 0x1p-18;  // seconds
constexpr double kDelta = 0x1p-20;
constexpr double kBandwidth = 0x1p33;  // bytes a second
constexpr double kBytes = 0x1p24;
constexpr LinkSpeed kSpeed{kAlpha, kDelta, kBandwidth};

Piece piece_of(const SourcePtr& source, const Shape& shape) {
    return {.source = source, .shape = shape, .block_bytes = kBytes};
}

Replay played(const char* name, CollectiveKind kind, const Network& network,
              double block_bytes = kBytes, int aggregation = 0) {
    const SourcePtr source = built_in(name, kind).value();
    Shape shape = least_shape(*source, network.ranks);
    shape.aggregation = aggregation;
    auto found = replay({.source = source, .shape = shape, .block_bytes = block_bytes}, network);
    EXPECT_TRUE(found.is_ok()) << found.status().to_string();
    return std::move(found).value();
}

double seconds_of_step(double bytes) { return kAlpha + kDelta + bytes / kBandwidth; }

TEST(ReplayTest, ARingTakesItsClosedForm) {
    for (const int n : {2, 4, 16, 64, 256}) {
        for (const Network& network : {ring_of_circuits(n, 1, kSpeed), one_switch(n, kSpeed)}) {
            const auto all_reduce = played("ring", CollectiveKind::kAllReduce, network);
            EXPECT_EQ(all_reduce.seconds, 2 * (n - 1) * seconds_of_step(kBytes / n)) << n;
            EXPECT_EQ(all_reduce.rounds, 2 * (n - 1));
            EXPECT_EQ(all_reduce.messages, 2LL * n * (n - 1));
            EXPECT_EQ(all_reduce.bytes_sent, 2 * (n - 1) * kBytes);
            const auto all_gather = played("ring", CollectiveKind::kAllGather, network);
            EXPECT_EQ(all_gather.seconds, (n - 1) * seconds_of_step(kBytes)) << n;
        }
    }
}

TEST(ReplayTest, TimesThatAreNoNumbersEndToo) {
    const double nan = std::nan("");
    for (const LinkSpeed& speed :
         {LinkSpeed{nan, kDelta, kBandwidth}, LinkSpeed{kAlpha, nan, kBandwidth},
          LinkSpeed{kAlpha, kDelta, nan}})
        played("ring", CollectiveKind::kAllReduce, one_switch(4, speed));
}

TEST(ReplayTest, HalvingAndDoublingTakeTheirClosedForm) {
    for (const int n : {2, 8, 64, 256}) {
        const Network network = one_switch(n, kSpeed);
        double seconds = 0;
        for (int part = 2; part <= n; part *= 2) seconds += 2 * seconds_of_step(kBytes / part);
        EXPECT_EQ(played("recursive_halving", CollectiveKind::kAllReduce, network).seconds, seconds)
            << n;
        EXPECT_EQ(played("recursive_doubling", CollectiveKind::kAllReduce, network).seconds,
                  std::countr_zero(static_cast<unsigned>(n)) * seconds_of_step(kBytes))
            << n;
    }
}

TEST(ReplayTest, ATreeTakesItsClosedForm) {
    for (const int n : {2, 8, 64, 1024}) {
        const int levels = std::countr_zero(static_cast<unsigned>(n));
        const auto tree = played("binomial", CollectiveKind::kBroadcast, one_switch(n, kSpeed));
        EXPECT_EQ(tree.seconds, levels * seconds_of_step(kBytes)) << n;
        EXPECT_EQ(tree.messages, n - 1);
        EXPECT_EQ(tree.rounds, levels);
    }
}

TEST(ReplayTest, MessagesOfOneLinkShareIt) {
    // All pairs over circuits of a ring: from each rank, to the ranks 1, 2 and 3 circuits away.
    const auto seconds = [](int ports) {
        const auto network = ring_of_circuits(4, ports, kSpeed);
        const SourcePtr source = built_in("pairwise", CollectiveKind::kAllToAll).value();
        const auto rounds = replay_in_rounds(piece_of(source, least_shape(*source, 4)), network);
        EXPECT_TRUE(rounds.is_ok()) << rounds.status().to_string();
        double sum = 0;
        for (const Round& round : *rounds) sum += round.seconds;
        return sum;
    };
    const auto crowded = [](int hops) {
        return kAlpha + hops * kDelta + hops * kBytes / kBandwidth;
    };
    EXPECT_EQ(seconds(1), crowded(1) + crowded(2) + crowded(3));
    EXPECT_EQ(seconds(2), crowded(1) + crowded(2) + crowded(1));
}

TEST(ReplayTest, RanksOfAHostShareItsLink) {
    const LinkSpeed across{kAlpha, kDelta, kBandwidth / 2};
    // Of 4 hosts with 4 ranks each: all ranks of a host exchange with those of another at once.
    const auto doubling =
        played("recursive_doubling", CollectiveKind::kAllReduce, two_levels(16, 4, kSpeed, across));
    EXPECT_EQ(doubling.seconds,
              2 * seconds_of_step(kBytes) + 2 * (kAlpha + kDelta + 4 * kBytes / (kBandwidth / 2)));
    EXPECT_EQ(doubling.busiest.name, "out of host 0");
    EXPECT_EQ(doubling.busiest.bytes, 8 * kBytes);
}

TEST(ReplayTest, ReductionsTakeTheirTime) {
    Network network = one_switch(8, kSpeed);
    network.reduce_seconds_per_byte = 0x1p-32;
    const double pause = kBytes * network.reduce_seconds_per_byte;
    EXPECT_EQ(played("recursive_doubling", CollectiveKind::kAllReduce, network).seconds,
              3 * (seconds_of_step(kBytes) + pause));
}

/// What turning the ranks makes of the times of one, and the times of all.
class SymmetryTest : public ::testing::TestWithParam<SourcePtr> {};

TEST_P(SymmetryTest, TheDeclaredOneHoldsForEveryShape) {
    if (GetParam()->symmetry == Symmetry::kNone) return;
    for (int ranks = 2; ranks <= 17; ++ranks)
        for (int multiple = 1; multiple <= 2; ++multiple)
            for (const int aggregation : {0, 1, 2, 4}) {
                Shape shape = testing::shape_of(GetParam(), ranks, 0, multiple);
                shape.aggregation = aggregation;
                if (!check_shape(*GetParam(), shape).is_ok()) continue;
                const Schedule schedule = generate(*GetParam(), shape).value();
                const auto turned =
                    rotations(schedule.programs.front(), shape, GetParam()->symmetry);
                ASSERT_EQ(turned, schedule.programs) << ranks << " ranks, " << aggregation;
            }
}

TEST_P(SymmetryTest, OneRankStandsForAll) {
    if (GetParam()->symmetry == Symmetry::kNone) return;
    for (const int ranks : {2, 3, 8, 13})
        for (Network network : {ring_of_circuits(ranks, 1, kSpeed),
                                ring_of_circuits(ranks, 2, kSpeed), one_switch(ranks, kSpeed)}) {
            network.reduce_seconds_per_byte = 0x1p-34;
            const Shape shape = testing::shape_of(GetParam(), ranks, 0, 2);
            const Replay one = replay(piece_of(GetParam(), shape), network).value();
            network.turns = false;
            const Replay all = replay(piece_of(GetParam(), shape), network).value();
            ASSERT_TRUE(one.one_for_all);
            ASSERT_FALSE(all.one_for_all);
            EXPECT_NEAR(one.seconds, all.seconds, 1e-12 * all.seconds);
            EXPECT_EQ(one.messages, all.messages);
            EXPECT_EQ(one.rounds, all.rounds);
            EXPECT_EQ(one.peak_chunks, all.peak_chunks);
            EXPECT_NEAR(one.bytes_sent, all.bytes_sent, 1e-12 * all.bytes_sent);
            EXPECT_NEAR(one.busiest.bytes, all.busiest.bytes, 1e-12 * all.busiest.bytes);
            for (std::size_t i = 0; i < one.steps.size(); ++i)
                ASSERT_NEAR(one.steps[i].done, all.steps[i].done, 1e-12 * all.seconds);
        }
}

INSTANTIATE_TEST_SUITE_P(All, SymmetryTest, ::testing::ValuesIn(testing::all_sources()),
                         [](const auto& test) { return testing::name_of(test.param); });

TEST(ReplayTest, RoundsAreThoseOfTheVerifier) {
    for (const SourcePtr& source : testing::all_sources())
        for (const int ranks : {3, 8}) {
            const Shape shape = least_shape(*source, ranks);
            const Replay found = replay(piece_of(source, shape), one_switch(ranks, kSpeed)).value();
            EXPECT_EQ(found.rounds, verify(generate(*source, shape).value())->rounds)
                << testing::name_of(source);
        }
}

TEST(ReplayTest, TheCriticalPathHasNoGaps) {
    const Replay found =
        played("recursive_halving", CollectiveKind::kAllReduce, ring_of_circuits(16, 1, kSpeed));
    ASSERT_FALSE(found.critical_path.empty());
    EXPECT_EQ(found.critical_path.front().begin, 0);
    for (std::size_t i = 1; i < found.critical_path.size(); ++i) {
        const StepTime& before = found.critical_path[i - 1];
        const StepTime& own = found.critical_path[i];
        EXPECT_TRUE(own.begin == before.done || own.begin == before.arrival ||
                    own.begin == before.start);
        if (own.rank != before.rank) {
            // By a message, or by a slot that it has emptied.
            EXPECT_TRUE(own.sender == before.rank || own.receiver == before.rank);
        }
    }
    EXPECT_EQ(std::max(found.critical_path.back().done, found.critical_path.back().arrival),
              found.seconds);
}

TEST(ReplayTest, PatHoldsFewChunksWhereItAggregatesFew) {
    const auto peak = [](int ranks, int aggregation) {
        return played("pat", CollectiveKind::kReduceScatter, one_switch(ranks, kSpeed), kBytes,
                      aggregation)
            .peak_chunks;
    };
    // A sum for each level of the tree, and what is under way: log2 of the ranks.
    EXPECT_LE(peak(1024, 1), 2 * 10);
    EXPECT_GE(peak(1024, 0), 512);
}

TEST(ReplayTest, SixteenThousandRanksArePlayedByOne) {
    constexpr int kRanks = 16384;
    const auto ring = played("ring", CollectiveKind::kAllGather, one_switch(kRanks, kSpeed));
    EXPECT_EQ(ring.seconds, (kRanks - 1) * seconds_of_step(kBytes));
    EXPECT_EQ(ring.messages, 268'419'072);
    const auto pat =
        played("pat", CollectiveKind::kAllGather, one_switch(kRanks, kSpeed), kBytes, 64);
    EXPECT_EQ(pat.messages, kRanks * (6 + 255LL));
    EXPECT_TRUE(ring.one_for_all && pat.one_for_all);
}

TEST(ReplayTest, RefusesOtherRanksAndSteps) {
    const SourcePtr ring = built_in("ring", CollectiveKind::kAllGather).value();
    EXPECT_EQ(replay(piece_of(ring, least_shape(*ring, 4)), one_switch(8, kSpeed)).status().code(),
              StatusCode::kInvalidArgument);
    const auto huge =
        replay(piece_of(ring, least_shape(*ring, 16384)), two_levels(16384, 8, kSpeed, kSpeed));
    EXPECT_EQ(huge.status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pccl::schedule
