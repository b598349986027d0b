// SPDX-License-Identifier: Apache-2.0

// Hand-made schedules, each with one fault, and what the verifier says about it.
#include "csrc/schedule/verifier/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "csrc/base/ids.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/schedule/samples.h"

namespace pccl::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr Buffer kIn = Buffer::kInput;
constexpr Buffer kOut = Buffer::kOutput;
constexpr Buffer kTmp = Buffer::kScratch;

std::string fault_of(const Schedule& schedule, Placement placement = Placement::kOutOfPlace) {
    const auto verdict = verify(schedule, placement);
    EXPECT_TRUE(verdict.is_ok() || verdict.status().code() == StatusCode::kInvalidArgument);
    return verdict.status().message();
}

/// Two ranks swap their vectors and add them: right, with one lane each.
Schedule good_all_reduce() {
    Schedule schedule{.name = "by hand",
                      .shape = {.kind = CollectiveKind::kAllReduce, .ranks = 2},
                      .programs = {}};
    for (const Rank peer : {1, 0}) {
        schedule.programs.push_back(
            {.lanes = {{{.action = Action::kSend, .src = {kIn, 0, 1}, .to = {peer}},
                        {.action = Action::kRecvReduce,
                         .src = {kIn, 0, 1},
                         .dst = {kOut, 0, 1},
                         .from = {peer}}}}});
    }
    return schedule;
}

Step& step(Schedule& schedule, std::size_t rank, std::size_t number, std::size_t lane = 0) {
    return schedule.programs[rank].lanes[lane][number];
}

TEST(VerifierTest, AcceptsWhatIsRight) {
    EXPECT_EQ(fault_of(good_all_reduce()), "");
    EXPECT_EQ(fault_of(good_all_reduce(), Placement::kInPlace), "");
    for (int ranks = 2; ranks <= 6; ++ranks) {
        EXPECT_EQ(fault_of(testing::two_lane_ring_all_reduce(ranks)), "");
        EXPECT_EQ(fault_of(testing::two_lane_ring_all_reduce(ranks), Placement::kInPlace), "");
    }
}

TEST(VerifierTest, SaysWhetherBlocksMayDifferInLength) {
    const auto takes_uneven = [](const Schedule& schedule) {
        return verify(schedule, Placement::kOutOfPlace).value().takes_uneven;
    };
    EXPECT_FALSE(takes_uneven(good_all_reduce())) << "it has one";
    Schedule schedule =
        generate("one_shot", {.kind = CollectiveKind::kAllGather, .ranks = 3}).value();
    EXPECT_TRUE(takes_uneven(schedule));
    // Rank 1 keeps rank 0's block in scratch for a while, where nothing tells whose it is.
    Lane& lane = schedule.programs[1].lanes[0];
    const auto from_0 = std::ranges::find(lane, Port{0}, &Step::from);
    ASSERT_EQ(from_0->dst, Slices(kOut, 0, 1));
    from_0->dst = {kTmp, 0, 1};
    lane.push_back({.action = Action::kCopy, .src = {kTmp, 0, 1}, .dst = {kOut, 0, 1}});
    schedule.programs[1].scratch_chunks = 1;
    EXPECT_EQ(fault_of(schedule), "");
    EXPECT_FALSE(takes_uneven(schedule));
}

TEST(VerifierTest, CountsRounds) {
    const auto rounds = [](const Schedule& schedule) {
        return verify(schedule, Placement::kOutOfPlace).value().rounds;
    };
    EXPECT_EQ(rounds(good_all_reduce()), 1);
    EXPECT_EQ(rounds(testing::two_lane_ring_all_reduce(5)), 8);
}

TEST(VerifierTest, TellsBitIdenticalSumsFromOthers) {
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

TEST(VerifierTest, RefusesAllToAllInPlace) {
    const auto schedule =
        generate("pairwise", {.kind = CollectiveKind::kAllToAll, .ranks = 2}).value();
    EXPECT_THAT(fault_of(schedule, Placement::kInPlace), HasSubstr("no in-place form"));
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

/// Every lane goes to phase "ring" before step `number`.
Schedule switched_before(std::size_t number) {
    Schedule schedule = good_all_reduce();
    schedule.phases = {"ring"};
    for (Program& program : schedule.programs)
        for (Lane& lane : program.lanes)
            lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(number),
                        {.action = Action::kSwitchPhase});
    return schedule;
}

TEST(VerifierTest, AcceptsSwitchesThatNoMessageCrosses) {
    EXPECT_EQ(fault_of(switched_before(0)), "");
    EXPECT_EQ(fault_of(switched_before(2), Placement::kInPlace), "");
    EXPECT_THAT(fault_of(switched_before(1)), HasSubstr("no message crosses a switch"));
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

TEST(VerifierTest, KnowsWhoHasWhichBuffer) {
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

/// good_all_reduce() with two chunks a message.
Schedule good_all_reduce_of_two_chunks() {
    Schedule schedule = good_all_reduce();
    schedule.shape.chunks = 2;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        step(schedule, rank, 0).src = {kIn, 0, 2};
        step(schedule, rank, 1).src = {kIn, 0, 2};
        step(schedule, rank, 1).dst = {kOut, 0, 2};
    }
    EXPECT_EQ(fault_of(schedule), "");
    return schedule;
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

/// Two ranks that swap the halves of a block of two chunks, in one message each way.
Schedule swapped_halves() {
    Schedule schedule{.name = "swapped", .shape = {.ranks = 2, .chunks = 2}, .programs = {}};
    for (Rank rank = 0; rank < 2; ++rank) {
        const Rank peer = 1 - rank;
        schedule.programs.push_back(
            {.lanes = {{{.action = Action::kSend, .src = {{kIn, 1, 1}, {kIn, 0, 1}}, .to = {peer}},
                        {.action = Action::kRecvReduce,
                         .src = {{kIn, 1, 1}, {kIn, 0, 1}},
                         .dst = {{kOut, 1, 1}, {kOut, 0, 1}},
                         .from = {peer}}}}});
    }
    return schedule;
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

TEST(VerifierTest, FindsDeadlocksAndSaysWhoWaitsForWhom) {
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

TEST(VerifierTest, FindsReadsOfWhatNobodyWrote) {
    Schedule schedule = good_all_reduce();
    schedule.programs[1].scratch_chunks = 1;
    step(schedule, 1, 0).src = {kTmp, 0, 1};
    EXPECT_THAT(fault_of(schedule), HasSubstr("rank 1 lane 0 step 0 (send scratch[0+1] to 0/0): "
                                              "reads scratch[0], which no earlier step writes"));
}

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
