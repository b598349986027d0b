// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/step_graph.h"

#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/simulator/replay.h"
#include "csrc/schedule/verifier/verifier.h"
#include "tests/cpp/schedule/catalogue.h"
#include "tests/cpp/schedule/replays.h"

namespace pccl::schedule {
namespace {

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
        for (SimulatedNetwork network :
             {ring_of_circuits(ranks, 1, kSpeed), ring_of_circuits(ranks, 2, kSpeed),
              one_switch(ranks, kSpeed)}) {
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
        const SimulatedStepTime& before = found.critical_path[i - 1];
        const SimulatedStepTime& own = found.critical_path[i];
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

}  // namespace
}  // namespace pccl::schedule
