// SPDX-License-Identifier: Apache-2.0

// Steps that do not exist or do not fit, and the fault that the verifier names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "csrc/schedule/generators/generators.h"
#include "csrc/schedule/verifier/checks.h"
#include "tests/cpp/schedule/faulty_schedules.h"

namespace pccl::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(VerifierTest, RefusesShapesOutOfRange) {
    const auto fault = [](auto change) {
        Schedule schedule = good_all_reduce();
        change(schedule);
        return fault_of(schedule);
    };
    EXPECT_THAT(fault([](Schedule& s) { s.shape.ranks = 3; }), HasSubstr("2 programs for 3 ranks"));
    EXPECT_THAT(fault([](Schedule& s) { s.shape.ranks = -1; }), HasSubstr("ranks is -1"));
    EXPECT_THAT(fault([](Schedule& s) { s.shape.root = 1; }), HasSubstr("root is 1"));
    EXPECT_THAT(fault([](Schedule& s) { s.shape.chunks = 0; }), HasSubstr("chunks is 0"));
    EXPECT_THAT(fault([](Schedule& s) { s.shape.slots = 0; }), HasSubstr("slots is 0"));
    EXPECT_THAT(fault([](Schedule& s) { s.shape.kind = CollectiveKind{99}; }),
                HasSubstr("does not exist"));
    EXPECT_THAT(fault([](Schedule& s) { s.programs[1].scratch_chunks = -1; }),
                HasSubstr("rank 1 has -1 chunks of scratch"));
    EXPECT_THAT(fault([](Schedule& s) { s.programs[1].scratch_chunks = 1 << 30; }),
                HasSubstr("too many"));
    EXPECT_THAT(fault([](Schedule& s) { s.shape.chunks = 2'000'000'000; }), HasSubstr("too many"));
}

TEST(VerifierTest, RefusesStepsThatDoNotFitTheirAction) {
    const auto fault = [](auto change) {
        Schedule schedule = good_all_reduce();
        change(step(schedule, 1, 0));
        return fault_of(schedule);
    };
    EXPECT_THAT(
        fault([](Step& s) { s.action = Action{77}; }),
        HasSubstr("rank 1 lane 0 step 0 (unknown input[0+1] to 0/0): this action does not"));
    EXPECT_THAT(fault([](Step& s) { s.src = {}; }), HasSubstr("needs slice 'src'"));
    EXPECT_THAT(fault([](Step& s) { s.dst = {kOut, 0, 1}; }), HasSubstr("has no slice 'dst'"));
    EXPECT_THAT(fault([](Step& s) { s.to = {}; }), HasSubstr("needs peer 'to'"));
    EXPECT_THAT(fault([](Step& s) { s.from = {0}; }), HasSubstr("has no peer 'from'"));
    EXPECT_THAT(fault([](Step& s) { s.to.peer = 2; }), HasSubstr("peer 2 is no rank"));
    EXPECT_THAT(fault([](Step& s) { s.to.peer = 1; }), HasSubstr("its own peer"));
    EXPECT_THAT(fault([](Step& s) { s.to.channel = -1; }), HasSubstr("channel -1"));
    EXPECT_THAT(fault([](Step& s) { s.src = {Buffer{9}, 0, 1}; }), HasSubstr("names no buffer"));
    EXPECT_THAT(fault([](Step& s) { s.src = {kIn, 1, 1}; }),
                HasSubstr("'src' leaves input, which has 1 chunks"));
    EXPECT_THAT(fault([](Step& s) { s.src = {kIn, -1, 1}; }), HasSubstr("'src' leaves input"));
    EXPECT_THAT(fault([](Step& s) { s.src = {kIn, 0, 1 << 30}; }), HasSubstr("'src' leaves input"));
    EXPECT_THAT(fault([](Step& s) { s.after = {{1, 0}}; }), HasSubstr("waits for lane 1 step 0"));
    EXPECT_THAT(fault([](Step& s) { s.after = {{0, 5}}; }), HasSubstr("waits for lane 0 step 5"));
}

TEST(VerifierTest, WantsASwitchInEveryLane) {
    Schedule schedule = switched_before(2);
    schedule.programs[1].lanes[0].pop_back();
    EXPECT_THAT(fault_of(schedule), HasSubstr("rank 1 lane 0 has 0 switch_phase, must have 1"));
    schedule = switched_before(2);
    schedule.phases.clear();
    EXPECT_THAT(fault_of(schedule), HasSubstr("rank 0 lane 0 has 1 switch_phase, must have 0"));
    schedule = switched_before(2);
    step(schedule, 0, 2).after = {{0, 0}};
    EXPECT_THAT(fault_of(schedule), HasSubstr("waits for all steps before it, and so names none"));
    for (const char* name : {"", "a b", "tab\t"}) {
        schedule = switched_before(2);
        schedule.phases = {name};
        EXPECT_THAT(fault_of(schedule), HasSubstr("printable characters")) << name;
    }
}

TEST(VerifierTest, ProtectsTheInput) {
    Schedule schedule = good_all_reduce();
    step(schedule, 0, 1).dst = {kIn, 0, 1};
    EXPECT_THAT(fault_of(schedule), HasSubstr("rank 0 lane 0 step 1 (recv_reduce input[0+1] -> "
                                              "input[0+1] from 1/0): writes input[0]"));
    // In place it is output, too.
    EXPECT_EQ(fault_of(schedule, Placement::kInPlace), "");
}

TEST(VerifierTest, ProtectsTheInputThatIsNotOutputInPlace) {
    Schedule schedule =
        generate("one_shot", {.kind = CollectiveKind::kReduceScatter, .ranks = 3}).value();
    schedule.programs[1].lanes[0].push_back(
        {.action = Action::kCopy, .src = {kIn, 1, 1}, .dst = {kIn, 1, 1}});
    EXPECT_EQ(fault_of(schedule, Placement::kInPlace), "");  // its own block
    step(schedule, 1, schedule.programs[1].lanes[0].size() - 1).dst = {kIn, 2, 1};
    EXPECT_THAT(fault_of(schedule, Placement::kInPlace), HasSubstr("writes input[2]"));
}

TEST(VerifierTest, TracksTheBuffersOfEachRank) {
    Schedule gather = generate("one_shot", {.kind = CollectiveKind::kGather, .ranks = 2}).value();
    gather.programs[1].lanes[0].push_back(
        {.action = Action::kCopy, .src = {kIn, 0, 1}, .dst = {kOut, 1, 1}});
    EXPECT_THAT(fault_of(gather), HasSubstr("output exists only on root 0"));
    EXPECT_THAT(fault_of(gather, Placement::kInPlace), HasSubstr("output exists only on root 0"));
    Schedule broadcast =
        generate("one_shot", {.kind = CollectiveKind::kBroadcast, .ranks = 2}).value();
    step(broadcast, 1, 0) = {.action = Action::kCopy, .src = {kIn, 0, 1}, .dst = {kOut, 0, 1}};
    EXPECT_THAT(fault_of(broadcast), HasSubstr("input exists only on root 0"));
}

TEST(VerifierTest, RefusesSlicesThatDoNotMatch) {
    Schedule schedule = good_all_reduce_of_two_chunks();
    step(schedule, 0, 1).src = {kIn, 0, 1};
    EXPECT_THAT(fault_of(schedule), HasSubstr("src has 1 chunks and dst 2"));
    step(schedule, 0, 1).dst = {kOut, 0, 1};
    EXPECT_THAT(fault_of(schedule), AllOf(HasSubstr("rank 0 lane 0 step 1"),
                                          HasSubstr("expects 1 chunks, but rank 1 lane 0 step 0"),
                                          HasSubstr("sends 2")));
}

TEST(VerifierTest, RefusesToMoveAChunkToOneOfAnotherLength) {
    Schedule schedule = good_all_reduce_of_two_chunks();
    schedule.programs[0].scratch_chunks = 3;
    schedule.programs[0].lanes[0].push_back(
        {.action = Action::kCopy, .src = {kIn, 0, 2}, .dst = {kTmp, 1, 2}});
    EXPECT_THAT(fault_of(schedule), HasSubstr("offsets must agree modulo 2"));

    schedule = good_all_reduce_of_two_chunks();
    schedule.programs[0].scratch_chunks = 3;
    step(schedule, 0, 1) = {.action = Action::kRecv, .dst = {kTmp, 1, 2}, .from = {1}};
    EXPECT_THAT(fault_of(schedule),
                HasSubstr("chunk 0 of the message is another one of its block than rank 1"));
}

TEST(VerifierTest, RefusesOverlappingOperands) {
    Schedule schedule = good_all_reduce();
    schedule.shape.chunks = 1;
    schedule.programs[0].scratch_chunks = 3;
    auto& lane = schedule.programs[0].lanes[0];
    lane.push_back({.action = Action::kCopy, .src = {kIn, 0, 1}, .dst = {kTmp, 0, 1}});
    lane.push_back({.action = Action::kCopy, .src = {kTmp, 0, 1}, .dst = {kTmp, 1, 1}});
    EXPECT_EQ(fault_of(schedule), "");
    lane.push_back({.action = Action::kCopy, .src = {kTmp, 0, 2}, .dst = {kTmp, 1, 2}});
    EXPECT_THAT(fault_of(schedule), HasSubstr("overlap"));
}

TEST(VerifierTest, RefusesListsThatMeetThemselves) {
    Schedule schedule = swapped_halves();
    step(schedule, 0, 1).dst = {{kOut, 1, 1}, {kOut, 0, 2}};
    EXPECT_THAT(fault_of(schedule), HasSubstr("writes a chunk twice"));

    schedule = swapped_halves();
    schedule.shape.chunks = 1;
    schedule.programs[0].scratch_chunks = 3;
    schedule.programs[0].lanes[0] = {
        {.action = Action::kCopy, .src = {{kIn, 0, 1}, {kIn, 0, 1}}, .dst = {kTmp, 0, 2}},
        {.action = Action::kCopy,
         .src = {{kTmp, 1, 1}, {kTmp, 0, 1}},
         .dst = {{kTmp, 0, 1}, {kTmp, 2, 1}}}};
    EXPECT_THAT(fault_of(schedule), HasSubstr("src and dst overlap"));

    schedule = swapped_halves();
    step(schedule, 0, 0).src = {{kIn, 1, 1}, {kIn, 2, 1}};
    EXPECT_THAT(fault_of(schedule), HasSubstr("'src' leaves input, which has 2 chunks"));
}

}  // namespace
}  // namespace pccl::schedule
