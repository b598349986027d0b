// SPDX-License-Identifier: Apache-2.0

// A rank that gives up uses its tensors for something else as soon as its kernel has ended. From
// then on no peer may store there; and what a peer has loaded from there is nobody's result.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/few_threads.h"
#include "tests/cpp/emulated/gate.h"
#include "tests/emulator/gpu.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::kFewThreads;
using kernels::kFewThreadsStaggered;
using kernels::LaunchPlan;
using kernels::Protocol;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr milliseconds kAMoment{300};
constexpr milliseconds kForEver{20'000};

constexpr std::byte kOld{0x33};    // in outputs, before the call
constexpr std::byte kAfter{0x77};  // in all tensors of who has given up

constexpr LaunchPlan kCopyEngine{.protocol = Protocol::kCopyEngine, .blocks = 2, .threads = 64};

/// What is called together, and by how many ranks.
struct Way {
    std::string name;
    std::vector<Case> cases;
    int ranks = 2;
};
std::ostream& operator<<(std::ostream& out, const Way& of) { return out << of.name; }

constexpr std::size_t kWholePackets = 5000;  // whole packets, also of blocks
Case directly(CollectiveKind kind) {
    return {.kind = kind, .count = kWholePackets, .plan = kFewThreads};
}
Case staggered(CollectiveKind kind) {
    return {.kind = kind, .count = kWholePackets, .plan = kFewThreadsStaggered};
}
Case long_one(CollectiveKind kind) {
    return {.kind = kind, .type = DataType::kBfloat16, .count = 40'000};
}

const std::vector<Way> kWays = {
    {"AllReduce", {directly(kAllReduce)}},
    {"AllReduceOfThree", {directly(kAllReduce)}, 3},
    {"AllReduceStaggered", {staggered(kAllReduce)}, 3},
    {"Reduce", {{.kind = kReduce, .count = kWholePackets, .root = 0, .plan = kFewThreads}}, 3},
    {"ReduceScatter", {directly(kReduceScatter)}},
    {"AllGather", {directly(kAllGather)}},
    {"AllGatherStaggered", {staggered(kAllGather)}, 3},
    {"AllToAll", {directly(kAllToAll)}},
    {"AllToAllStaggered", {staggered(kAllToAll)}, 3},
    {"Broadcast", {directly(kBroadcast)}, 3},
    {"Gather", {directly(kGather)}},
    {"Scatter", {{.kind = kScatter, .count = kWholePackets, .root = 1, .plan = kFewThreads}}},
    {"CopyEngines", {{.kind = kAllGather, .count = kWholePackets, .plan = kCopyEngine}}},
    {"LL", {{.count = 100}}},
    {"Schedule",
     {{.count = kWholePackets,
       .plan = LaunchPlan{Protocol::kDirect, 4, 192},
       .algorithm = "ring"}}},
    {"ScheduleOfThree",
     {{.count = kWholePackets,
       .plan = LaunchPlan{Protocol::kDirect, 4, 192},
       .algorithm = "two_shot"}},
     3},
    {"LargeBatch", {long_one(kAllReduce), long_one(kAllReduce)}},
    {"LargeBatchOfMoves", {long_one(kAllGather), long_one(kAllGather)}},
};

/// The first call maps what peers need.
void call_once(const RunTogether& run, fakes::DeviceRank& member) {
    ASSERT_TRUE(run.launch().is_ok());
    run.overwrite_outputs(kOld);
    member.together.arrive_and_wait();
}

/// A kernel that was launched and did not give up has done what it was launched for. Others may
/// have ended the group before the launch.
void expect_results_or_failure(const RunTogether& run, const fakes::DeviceRank& member,
                               const Status& launched) {
    EXPECT_TRUE(!launched.is_ok() || member.group.has_given_up() || run.has_results())
        << "rank " << member.group.rank() << " takes for a result what is none";
}

class EmulatedGivingUpTest : public ::testing::TestWithParam<Way> {
   protected:
    void SetUp() override {
        if (GetParam().cases.size() > 1 && !kRunsLongOnes) GTEST_SKIP() << kWhyNoLongOnes;
    }
};

/// Rank 0 is told to stop while rank 1 is in the middle of its tensors.
TEST_P(EmulatedGivingUpTest, NoPeerIsInTheTensorsOfWhoHasReturned) {
    Gate gate(kAMoment);
    fakes::run_device_ranks({.size = GetParam().ranks}, [&](fakes::DeviceRank& member) {
        const RunTogether run(GetParam().cases, member);
        call_once(run, member);
        if (member.group.rank() == 0) {
            std::thread aborting([&] {
                gate.await_entered();
                member.group.abort();
            });
            static_cast<void>(run.launch_and_look_away());
            run.overwrite(kAfter);
            gate.open();
            aborting.join();
        } else {
            const bool is_slow = member.group.rank() == 1;
            if (is_slow) emulator::call_before_packets([&] { gate.pass(); });
            const Status launched = run.launch_and_look_away();
            emulator::call_before_packets({});
            if (is_slow) gate.pass();  // it loads nothing
            expect_results_or_failure(run, member, launched);
        }
        member.together.arrive_and_wait();
        EXPECT_TRUE(member.group.rank() != 0 || run.holds_only(kAfter));
    });
}

INSTANTIATE_TEST_SUITE_P(Ways, EmulatedGivingUpTest, ::testing::ValuesIn(kWays),
                         [](const auto& each) { return each.param.name; });

/// Rank 0 gives up waiting for rank 2, which comes just then. Rank 1 knows of both.
class EmulatedLateThirdTest : public ::testing::TestWithParam<Way> {};

TEST_P(EmulatedLateThirdTest, FindsNoTensorsOfWhoHasReturned) {
#if defined(__SANITIZE_THREAD__)
    if (GetParam().name == "CopyEngines")
        GTEST_SKIP()
            << "a copy engine reads what its owner overwrites, and who asked for it looks after";
#endif
    Gate gate(kForEver);
    const fakes::DeviceRanksOptions options{.size = 3, .timeout = milliseconds(3000)};
    fakes::run_device_ranks(options, [&](fakes::DeviceRank& member) {
        const RunTogether run(GetParam().cases, member);
        call_once(run, member);
        const Rank rank = member.group.rank();
        if (rank == 0) member.group.set_timeout(kAMoment);
        if (rank == 2) gate.pass();
        const Status launched = run.launch_and_look_away();
        if (rank == 0) {
            run.overwrite(kAfter);
            gate.open();
        } else {
            expect_results_or_failure(run, member, launched);
        }
        member.together.arrive_and_wait();
        EXPECT_TRUE(rank != 0 || run.holds_only(kAfter));
    });
}

const std::vector<Way> kWaysOfThree = {
    {"AllReduce", {directly(kAllReduce)}},
    {"AllReduceStaggered", {staggered(kAllReduce)}},
    {"AllGather", {directly(kAllGather)}},
    {"AllToAll", {directly(kAllToAll)}},
    {"CopyEngines", {{.kind = kAllGather, .count = kWholePackets, .plan = kCopyEngine}}},
};
INSTANTIATE_TEST_SUITE_P(Ways, EmulatedLateThirdTest, ::testing::ValuesIn(kWaysOfThree),
                         [](const auto& each) { return each.param.name; });

/// Rank 0 has pushed to rank 1, and gives up before it pushes to rank 2, for rank 1 is slow.
TEST(EmulatedStaggeredTest, WhoGivesUpInAStepHasNotDoneTheOthers) {
    Gate gate(kForEver);
    fakes::run_device_ranks({.size = 3}, [&](fakes::DeviceRank& member) {
        const std::vector<Case> cases = {staggered(kAllGather)};
        const RunTogether run(cases, member);
        call_once(run, member);
        const Rank rank = member.group.rank();
        if (rank == 0) member.group.set_timeout(kAMoment);
        if (rank == 1) emulator::call_before_packets([&] { gate.pass(); });
        const Status launched = run.launch_and_look_away();
        if (rank == 0) gate.open();
        expect_results_or_failure(run, member, launched);
    });
}

/// Rank 0 finds that rank 1 expects less than it sends; not so the other way.
TEST(EmulatedLengthTest, WhoFindsThatLengthsDifferIsNoLongerWrittenTo) {
    Gate gate(kAMoment);
    fakes::run_device_ranks({.size = 2}, [&](fakes::DeviceRank& member) {
        const std::vector<Case> cases = {{.kind = kAllToAll,
                                          .count = kWholePackets,
                                          .plan = kFewThreads,
                                          .has_split_sizes = true}};
        const RunTogether run(cases, member);
        call_once(run, member);
        Collective uneven = run.collectives().front();
        std::vector<Block> outputs(uneven.outputs.begin(), uneven.outputs.end());
        const bool expects_less = member.group.rank() == 1;
        if (expects_less) outputs.front().count -= 1;
        uneven.outputs = outputs;
        if (expects_less) emulator::call_before_packets([&] { gate.pass(); });
        EXPECT_TRUE(member.group.launch(uneven, nullptr, {.plan = kFewThreads}).is_ok());
        EXPECT_TRUE(member.group.has_given_up());
        if (!expects_less) {
            run.overwrite(kAfter);
            gate.open();
        }
        member.together.arrive_and_wait();
        EXPECT_TRUE(expects_less || run.holds_only(kAfter));
        EXPECT_EQ(member.group.health().code(), StatusCode::kMismatch);
    });
}

/// A peer that takes too long is not awaited for ever: it has no result, and the error says so.
class EmulatedDoubtTest : public ::testing::TestWithParam<Way> {};

TEST_P(EmulatedDoubtTest, WhatWasLoadedFromWhoHasReturnedIsNoResult) {
    if (fakes::path_under_test() == kernels::GpuPath::kHost)
        GTEST_SKIP() << "no kernel is in a peer's tensors where they meet in the host";
    Gate gate(kForEver);
    fakes::run_device_ranks({.size = 2}, [&](fakes::DeviceRank& member) {
        const RunTogether run(GetParam().cases, member);
        call_once(run, member);
        const Rank rank = member.group.rank();
        if (rank == 0) member.group.set_timeout(kAMoment);
        if (rank == 1) emulator::call_before_packets([&] { gate.pass(); });
        static_cast<void>(run.launch_and_look_away());
        if (rank == 0) {
            run.overwrite(kAfter);
            gate.open();
        }
        EXPECT_TRUE(member.group.has_given_up());
        member.together.arrive_and_wait();
        const std::string why = member.group.health().message();
        const bool is_in_doubt = why.find("rank 1 had not let go of this rank") != why.npos;
        EXPECT_EQ(is_in_doubt, rank == 0) << why;
    });
}

INSTANTIATE_TEST_SUITE_P(Ways, EmulatedDoubtTest,
                         ::testing::Values(Way{"ReduceScatter", {directly(kReduceScatter)}},
                                           Way{"AllReduce", {directly(kAllReduce)}},
                                           Way{"AllGatherStaggered", {staggered(kAllGather)}}),
                         [](const auto& each) { return each.param.name; });

/// Copy engines know nothing of who gives up: the kernel behind them does.
TEST(EmulatedCopyEnginesTest, WhatWasPulledFromWhoHasReturnedIsNoResult) {
    Gate gate(kForEver);
    fakes::run_device_ranks({.size = 2}, [&](fakes::DeviceRank& member) {
        const std::vector<Case> cases = {
            {.kind = kAllGather, .count = kWholePackets, .plan = kCopyEngine}};
        const RunTogether run(cases, member);
        call_once(run, member);
        const Rank rank = member.group.rank();
        if (rank == 0) member.group.set_timeout(kAMoment);
        if (rank == 1) member.driver.call_before_copies([&] { gate.pass(); });
        const Status launched = run.launch_and_look_away();
        if (rank == 0) {
            run.overwrite(kAfter);
            gate.open();
        } else {
            expect_results_or_failure(run, member, launched);
        }
        member.together.arrive_and_wait();
        EXPECT_TRUE(rank != 0 || run.holds_only(kAfter));
    });
}

/// Kernels tell each other: no host has looked by then.
TEST(EmulatedReasonTest, IsThatOfTheFirstToGiveUp) {
    const fakes::DeviceRanksOptions options{.size = 3, .timeout = milliseconds(5000)};
    fakes::run_device_ranks(options, [&](fakes::DeviceRank& member) {
        const std::vector<Case> cases = {directly(kAllReduce)};
        const RunTogether run(cases, member);
        call_once(run, member);
        const bool is_late = member.group.rank() == 2;
        if (member.group.rank() == 0) member.group.set_timeout(kAMoment);
        if (is_late) member.together.arrive_and_wait();
        static_cast<void>(run.launch_and_look_away());
        EXPECT_TRUE(member.group.has_given_up());
        if (!is_late) member.together.arrive_and_wait();
        member.together.arrive_and_wait();
        const Status why = member.group.health();
        EXPECT_EQ(why.code(), is_late ? StatusCode::kPeerLost : StatusCode::kTimeout);
        EXPECT_EQ(why.peer(), is_late ? 0 : 2);
        EXPECT_THAT(why.message(), HasSubstr("rank 0 waited for rank 2 in all_reduce #2"));
        member.together.arrive_and_wait();
    });
}

/// Messages of one length, from rank 0 to rank 1.
class EmulatedMessageEndsTest : public ::testing::Test {
   protected:
    static constexpr std::size_t kBytes = 200'000;  // that several blocks send

    static std::span<std::byte> memory(fakes::DeviceRank& member) {
        auto* const base = std::bit_cast<std::byte*>(member.driver.allocate(kBytes));
        return {base, kBytes};
    }
    static void pass(fakes::DeviceRank& member, std::span<std::byte> bytes) {
        const device::PeerMessage message{1 - member.group.rank(), bytes.data(), bytes.size()};
        const bool is_sending = member.group.rank() == 0;
        EXPECT_TRUE((is_sending ? member.group.exchange({.sends = {&message, 1}}, nullptr)
                                : member.group.exchange({.receives = {&message, 1}}, nullptr))
                        .is_ok());
    }
    static bool holds_only(std::span<const std::byte> bytes, std::byte value) {
        return std::ranges::all_of(bytes, [=](std::byte byte) { return byte == value; });
    }
};

TEST_F(EmulatedMessageEndsTest, AReceiverThatHasGivenUpIsNoLongerWrittenTo) {
    fakes::run_device_ranks({.size = 2}, [&](fakes::DeviceRank& member) {
        member.group.set_timeout(kAMoment);
        const auto bytes = memory(member);
        const bool is_sending = member.group.rank() == 0;
        std::ranges::fill(bytes, is_sending ? kOld : kAfter);
        if (is_sending) member.together.arrive_and_wait();
        pass(member, bytes);
        EXPECT_TRUE(member.group.has_given_up());
        if (!is_sending) member.together.arrive_and_wait();
        member.together.arrive_and_wait();
        EXPECT_TRUE(is_sending || holds_only(bytes, kAfter));
    });
}

TEST_F(EmulatedMessageEndsTest, ASenderIsNotInTheMemoryOfAReceiverThatHasReturned) {
    Gate gate(kAMoment);
    fakes::run_device_ranks({.size = 2}, [&](fakes::DeviceRank& member) {
        const auto bytes = memory(member);
        const bool is_sending = member.group.rank() == 0;
        std::ranges::fill(bytes, kOld);
        if (is_sending) {
            emulator::call_before_packets([&] { gate.pass(); });
            pass(member, bytes);
        } else {
            std::thread aborting([&] {
                gate.await_entered();
                member.group.abort();
            });
            pass(member, bytes);
            std::ranges::fill(bytes, kAfter);
            gate.open();
            aborting.join();
        }
        member.together.arrive_and_wait();
        EXPECT_TRUE(is_sending || holds_only(bytes, kAfter));
    });
}

}  // namespace
}  // namespace pccl::comm
