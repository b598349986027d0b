// SPDX-License-Identifier: Apache-2.0

// Steps that access one chunk without an order between them, and those that have one.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/base/ids.h"
#include "csrc/schedule/verifier/checks.h"
#include "tests/cpp/schedule/faulty_schedules.h"

namespace pccl::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VerifierTest, FindsRaces) {
    Schedule schedule = good_all_reduce();
    schedule.programs[0].scratch_chunks = 1;
    schedule.programs[0].lanes.push_back(
        {{.action = Action::kRecv, .dst = {kTmp, 0, 1}, .from = {1, 1}},
         {.action = Action::kCopy, .src = {kTmp, 0, 1}, .dst = {kOut, 0, 1}}});
    schedule.programs[1].lanes.push_back(
        {{.action = Action::kSend, .src = {kOut, 0, 1}, .to = {0, 1}, .after = {{0, 1}}}});
    EXPECT_THAT(fault_of(schedule), AllOf(HasSubstr("touches output[0] in no order with"),
                                          HasSubstr("rank 0 lane 0 step 1 (recv_reduce"),
                                          HasSubstr("rank 0 lane 1 step 1 (copy"),
                                          HasSubstr("one must wait for the other")));
    step(schedule, 0, 1, 1).after = {{0, 1}};
    EXPECT_EQ(fault_of(schedule), "");
}

TEST(VerifierTest, FindsRacesThatOnlySharedMemoryMakes) {
    Schedule schedule = good_all_reduce();
    // Sending and reducing as two lanes: out of place they touch different memory.
    auto& lanes = schedule.programs[0].lanes;
    lanes.push_back({lanes[0].back()});
    lanes[0].pop_back();
    EXPECT_EQ(fault_of(schedule), "");
    EXPECT_THAT(fault_of(schedule, Placement::kInPlace),
                AllOf(HasSubstr("rank 0"), HasSubstr("in no order")));
}

TEST(VerifierTest, TakesMessagesForAnOrder) {
    Schedule schedule = good_all_reduce();
    auto& lanes = schedule.programs[0].lanes;
    lanes.push_back({lanes[0].back()});
    lanes[0].pop_back();
    EXPECT_THAT(fault_of(schedule, Placement::kInPlace), HasSubstr("in no order"));
    // If rank 1 answers only once it has rank 0's vector, rank 0's second lane comes after its
    // first.
    schedule.programs[1].scratch_chunks = 1;
    schedule.programs[1].lanes[0] = {
        {.action = Action::kCopy, .src = {kIn, 0, 1}, .dst = {kTmp, 0, 1}},
        {.action = Action::kRecvReduce, .src = {kIn, 0, 1}, .dst = {kOut, 0, 1}, .from = {0}},
        {.action = Action::kSend, .src = {kTmp, 0, 1}, .to = {0}}};
    EXPECT_EQ(fault_of(schedule, Placement::kInPlace), "");
}

TEST(VerifierTest, TakesTheReuseOfASlotForAnOrder) {
    Schedule schedule = good_all_reduce();
    schedule.programs[1].scratch_chunks = 3;
    const auto send = [](ChannelId channel) {
        return Step{.action = Action::kSend, .src = {kIn, 0, 1}, .to = {1, channel}};
    };
    const auto recv = [](ChannelId channel, int place) {
        return Step{.action = Action::kRecv, .dst = {kTmp, place, 1}, .from = {0, channel}};
    };
    schedule.programs[0].lanes.push_back({send(1), send(1), send(2)});
    schedule.programs[1].lanes.push_back(
        {{.action = Action::kCopy, .src = {kIn, 0, 1}, .dst = {kTmp, 0, 1}},
         recv(1, 1),
         recv(1, 2)});
    schedule.programs[1].lanes.push_back({recv(2, 0)});
    EXPECT_THAT(fault_of(schedule), HasSubstr("touches scratch[0] in no order"));
    // With one slot the second message needs the first to be received, and the third comes after
    // it.
    schedule.shape.slots = 1;
    EXPECT_EQ(fault_of(schedule), "");
}

}  // namespace
}  // namespace pccl::schedule
