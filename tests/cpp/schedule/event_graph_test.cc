// SPDX-License-Identifier: Apache-2.0

// Messages, FIFOs and switches of phases that do not fit together, and deadlocks.
#include "csrc/schedule/verifier/event_graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/schedule/faulty_schedules.h"

namespace pccl::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VerifierTest, AcceptsSwitchesThatNoMessageCrosses) {
    EXPECT_EQ(fault_of(switched_before(0)), "");
    EXPECT_EQ(fault_of(switched_before(2), Placement::kInPlace), "");
    EXPECT_THAT(fault_of(switched_before(1)), HasSubstr("no message crosses a switch"));
}

TEST(VerifierTest, FollowsEachChunkOfAListToItsPlace) {
    EXPECT_EQ(fault_of(swapped_halves()), "");

    Schedule schedule = swapped_halves();
    step(schedule, 0, 0).src = {{kIn, 0, 1}, {kIn, 1, 1}};
    EXPECT_THAT(fault_of(schedule), HasSubstr("chunk 0 of the message is another one"));

    schedule = swapped_halves();
    step(schedule, 0, 1).src = {{kIn, 0, 1}, {kIn, 1, 1}};
    EXPECT_THAT(fault_of(schedule), HasSubstr("offsets must agree modulo 2"));
}

TEST(VerifierTest, FindsMessagesWithoutCounterpart) {
    Schedule schedule = good_all_reduce();
    schedule.programs[0].lanes[0].erase(schedule.programs[0].lanes[0].begin());
    EXPECT_THAT(fault_of(schedule),
                AllOf(HasSubstr("rank 1 lane 0 step 1 (recv_reduce"), HasSubstr("no counterpart"),
                      HasSubstr("FIFO 0 -> 1 channel 0 has 0 sends and 1 receives")));
}

TEST(VerifierTest, FindsFifosWithTwoLanesAtOneEnd) {
    Schedule schedule = good_all_reduce();
    for (Program& program : schedule.programs) program.lanes.push_back(program.lanes[0]);
    EXPECT_THAT(fault_of(schedule),
                AllOf(HasSubstr("rank 0 lane 1 step 0 (send"), HasSubstr("like lane 0")));
}

TEST(VerifierTest, FindsDeadlocksAndNamesTheWaitingSteps) {
    Schedule schedule = good_all_reduce();
    for (Program& program : schedule.programs) {
        std::swap(program.lanes[0][0], program.lanes[0][1]);
    }
    EXPECT_THAT(fault_of(schedule),
                AllOf(HasSubstr("deadlock with 2 slots"),
                      HasSubstr("rank 0 lane 0 step 0 (recv_reduce input[0+1] -> output[0+1] from "
                                "1/0) waits for a message from rank 1 lane 0 step 1 (send"),
                      HasSubstr("rank 1 lane 0 step 0 (recv_reduce")));
}

TEST(VerifierTest, FindsDeadlocksForWantOfSlots) {
    Schedule ring = generate("ring", {.kind = CollectiveKind::kAllGather, .ranks = 3}).value();
    EXPECT_EQ(fault_of(ring), "");
    ring.shape.slots = 1;
    EXPECT_THAT(fault_of(ring), AllOf(HasSubstr("deadlock with 1 slots"),
                                      HasSubstr("waits for a free slot after rank")));
}

TEST(VerifierTest, FindsDependenciesInACircle) {
    Schedule schedule = good_all_reduce();
    schedule.programs[0].lanes.push_back({{.after = {{0, 0}}}});
    step(schedule, 0, 0).after = {{1, 0}};
    EXPECT_THAT(fault_of(schedule), AllOf(HasSubstr("deadlock"), HasSubstr("nop after 0:0")));
}

}  // namespace
}  // namespace pccl::schedule
