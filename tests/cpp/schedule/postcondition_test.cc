// SPDX-License-Identifier: Apache-2.0

// Schedules whose results are wrong, and the contribution that the verifier names.
#include "csrc/schedule/verifier/postcondition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/schedule/faulty_schedules.h"

namespace pccl::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VerifierTest, FindsMissingContributions) {
    Schedule schedule = good_all_reduce();
    step(schedule, 0, 1) = {.action = Action::kRecv, .dst = {kOut, 0, 1}, .from = {1}};
    EXPECT_THAT(fault_of(schedule),
                AllOf(HasSubstr("rank 0 lane 0 step 1 (recv output[0+1] from 1/0)"),
                      HasSubstr("output[0] lacks input[0] of rank 0"),
                      HasSubstr("must hold the sum over all ranks of their input[0]")));
}

TEST(VerifierTest, FindsContributionsCountedTwice) {
    Schedule schedule = good_all_reduce();
    schedule.programs[0].lanes[0].push_back(
        {.action = Action::kReduce, .src = {kIn, 0, 1}, .dst = {kOut, 0, 1}});
    EXPECT_THAT(fault_of(schedule),
                AllOf(HasSubstr("rank 0 lane 0 step 2 (reduce input[0+1] -> output[0+1])"),
                      HasSubstr("adds input[0] of rank 0 a second time")));
}

TEST(VerifierTest, FindsDoublingWithoutEnd) {
    Schedule schedule = good_all_reduce();
    for (int i = 0; i < 200; ++i) {
        schedule.programs[0].lanes[0].push_back(
            {.action = Action::kReduce, .src = {kOut, 0, 1}, .dst = {kOut, 0, 1}});
    }
    EXPECT_THAT(fault_of(schedule), HasSubstr("a second time"));
}

TEST(VerifierTest, FindsWrongChunks) {
    Schedule schedule = good_all_reduce_of_two_chunks();
    schedule.programs[0].scratch_chunks = 4;
    schedule.shape.chunks = 1;
    schedule.shape.kind = CollectiveKind::kAllToAll;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        const auto peer = static_cast<Rank>(1 - rank);
        const auto own = static_cast<int>(rank);
        schedule.programs[rank].lanes[0] = {
            {.action = Action::kSend, .src = {kIn, peer, 1}, .to = {peer}},
            {.action = Action::kCopy, .src = {kIn, own, 1}, .dst = {kOut, own, 1}},
            {.action = Action::kRecv, .dst = {kOut, peer, 1}, .from = {peer}}};
    }
    EXPECT_EQ(fault_of(schedule), "");
    step(schedule, 0, 0).src = {kIn, 0, 1};
    EXPECT_THAT(fault_of(schedule), AllOf(HasSubstr("rank 1 lane 0 step 2 (recv output[0+1]"),
                                          HasSubstr("output[0] holds input[0] of rank 0"),
                                          HasSubstr("must hold input[1] of rank 0")));
}

TEST(VerifierTest, FindsOutputThatNobodyWrites) {
    Schedule schedule =
        generate("one_shot", {.kind = CollectiveKind::kBroadcast, .ranks = 2}).value();
    step(schedule, 0, 1) = {};
    EXPECT_THAT(fault_of(schedule),
                HasSubstr("no step of rank 0 writes output[0]; it must hold input[0] of rank 0, "
                          "its own: copy it there (c.input(0).copy_to(0))"));
    EXPECT_EQ(fault_of(schedule, Placement::kInPlace), "");
}

}  // namespace
}  // namespace pccl::schedule
