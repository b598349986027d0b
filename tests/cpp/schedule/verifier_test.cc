// SPDX-License-Identifier: Apache-2.0

// Hand-made schedules, each with one fault, and what the verifier says about it.
#include "csrc/schedule/verifier/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/schedule/faulty_schedules.h"
#include "tests/cpp/schedule/samples.h"

namespace pccl::schedule {
namespace {

using ::testing::HasSubstr;

TEST(VerifierTest, AcceptsWhatIsRight) {
    EXPECT_EQ(fault_of(good_all_reduce()), "");
    EXPECT_EQ(fault_of(good_all_reduce(), Placement::kInPlace), "");
    for (int ranks = 2; ranks <= 6; ++ranks) {
        EXPECT_EQ(fault_of(testing::two_lane_ring_all_reduce(ranks)), "");
        EXPECT_EQ(fault_of(testing::two_lane_ring_all_reduce(ranks), Placement::kInPlace), "");
    }
}

TEST(VerifierTest, CountsRounds) {
    const auto rounds = [](const Schedule& schedule) {
        return verify(schedule, Placement::kOutOfPlace).value().rounds;
    };
    EXPECT_EQ(rounds(good_all_reduce()), 1);
    EXPECT_EQ(rounds(testing::two_lane_ring_all_reduce(5)), 8);
}

TEST(VerifierTest, DistinguishesBitIdenticalSums) {
    EXPECT_TRUE(verify(good_all_reduce(), Placement::kOutOfPlace).value().bit_identical);
    // Everybody adds its own first: (x0 + x1) + x2, (x1 + x0) + x2, but (x2 + x0) + x1.
    Schedule schedule{.name = "own first",
                      .shape = {.kind = CollectiveKind::kAllReduce, .ranks = 3},
                      .programs = {}};
    for (Rank rank = 0; rank < 3; ++rank) {
        const Rank low = rank == 0 ? 1 : 0;
        const Rank high = rank == 2 ? 1 : 2;
        schedule.programs.push_back(
            {.lanes = {{{.action = Action::kSend, .src = {kIn, 0, 1}, .to = {low}},
                        {.action = Action::kSend, .src = {kIn, 0, 1}, .to = {high}},
                        {.action = Action::kRecvReduce,
                         .src = {kIn, 0, 1},
                         .dst = {kOut, 0, 1},
                         .from = {low}},
                        {.action = Action::kRecvReduce, .dst = {kOut, 0, 1}, .from = {high}}}}});
    }
    const auto verdict = verify(schedule, Placement::kOutOfPlace);
    ASSERT_TRUE(verdict.is_ok()) << verdict.status().to_string();
    EXPECT_FALSE(verdict.value().bit_identical);
}

TEST(VerifierTest, RefusesAllToAllInPlace) {
    const auto schedule =
        generate("pairwise", {.kind = CollectiveKind::kAllToAll, .ranks = 2}).value();
    EXPECT_THAT(fault_of(schedule, Placement::kInPlace), HasSubstr("no in-place form"));
}

TEST(VerifierTest, CountsRoundsBehindASwitchAsLater) {
    // Two exchanges that need not wait for each other, but for the switch between them.
    Schedule schedule = good_all_reduce();
    schedule.phases = {"ring"};
    for (Program& program : schedule.programs) {
        Lane& lane = program.lanes[0];
        const Lane first = lane;
        lane.push_back({.action = Action::kSwitchPhase});
        lane.insert(lane.end(), first.begin(), first.end());
    }
    EXPECT_EQ(verify(schedule, Placement::kOutOfPlace).value().rounds, 2);
}

}  // namespace
}  // namespace pccl::schedule
