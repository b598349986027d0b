// SPDX-License-Identifier: Apache-2.0

// When the steps of schedules happen on the emulated GPU, whose clock is the host's.
#include "csrc/device/programs/program_timeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "csrc/device/launch/preferences.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::comm {
namespace {

using kernels::LaunchPlan;
using kernels::Protocol;
using schedule::TimedStep;
using schedule::TimedSteps;

constexpr int kTimelineRanks = 3;
constexpr std::size_t kTimelineCount = 100'003;  // several windows of LL and LL128

void add_up(fakes::DeviceRank& member, Protocol protocol, std::string_view algorithm) {
    std::vector<std::int32_t> data(kTimelineCount, 1);
    const Block block{reinterpret_cast<std::byte*>(data.data()), kTimelineCount};
    const Status status = member.group.launch(
        {.type = DataType::kInt32, .inputs = {&block, 1}, .outputs = {&block, 1}}, nullptr,
        {.plan = LaunchPlan{protocol, 4, 192},
         .schedule = schedule::built_in(algorithm, CollectiveKind::kAllReduce).value()});
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    member.together.arrive_and_wait();
    EXPECT_EQ(data, std::vector<std::int32_t>(kTimelineCount, kTimelineRanks));
}

/// The steps of all ranks, of two calls.
struct Found {
    TimePoint before{};
    TimePoint after{};
    std::vector<TimedSteps> of_rank{kTimelineRanks};
};

Found record(Protocol protocol, std::string_view algorithm) {
    Found found;
    found.before = system_clock().now();
    fakes::run_device_ranks({.size = kTimelineRanks}, [&](fakes::DeviceRank& member) {
        add_up(member, protocol, algorithm);
        const Status recording = member.group.record_timeline(100'000);
        ASSERT_TRUE(recording.is_ok()) << recording.to_string();
        for (int call = 0; call < 2; ++call) add_up(member, protocol, algorithm);
        const auto taken = member.group.take_timeline();
        ASSERT_TRUE(taken.is_ok()) << taken.status().to_string();
        found.of_rank.at(static_cast<std::size_t>(member.group.rank())) = *taken;
        EXPECT_TRUE(member.group.take_timeline()->steps.empty());
    });
    found.after = system_clock().now();
    return found;
}

schedule::Schedule schedule_of(std::string_view algorithm) {
    const auto source = schedule::built_in(algorithm, CollectiveKind::kAllReduce).value();
    return schedule::generate(*source, schedule::least_shape(*source, kTimelineRanks)).value();
}

class EmulatedTimelinesTest
    : public ::testing::TestWithParam<std::tuple<Protocol, std::string_view>> {};

TEST_P(EmulatedTimelinesTest, HaveEveryStepOfEveryLaneOnceInEachWindow) {
    const auto [protocol, algorithm] = GetParam();
    const Found found = record(protocol, algorithm);
    const auto made = schedule_of(algorithm);
    for (std::size_t rank = 0; rank < kTimelineRanks; ++rank) {
        const TimedSteps& of = found.of_rank[rank];
        EXPECT_EQ(of.lost, 0U);
        // By call, window, lane and step.
        std::map<std::tuple<std::uint32_t, std::uint32_t, int, int>, TimedStep> steps;
        for (const TimedStep& each : of.steps)
            EXPECT_TRUE(
                steps.emplace(std::tuple(each.sequence, each.window, each.lane, each.step), each)
                    .second);
        const auto& lanes = made.programs[rank].lanes;
        std::uint32_t windows = 0;
        for (const TimedStep& each : of.steps) windows = std::max(windows, each.window + 1);
        EXPECT_GT(windows, protocol == Protocol::kDirect ? 0U : 1U);
        std::size_t all = 0;
        for (const auto& lane : lanes) all += 2 * windows * lane.size();
        EXPECT_EQ(steps.size(), all);
        for (const auto& [place, each] : steps) {
            const auto& step = lanes.at(static_cast<std::size_t>(each.lane))
                                   .at(static_cast<std::size_t>(each.step));
            EXPECT_EQ(each.action, step.action);
            EXPECT_EQ(each.from.peer, step.from.peer);
            EXPECT_EQ(each.to.peer, step.to.peer);
            EXPECT_TRUE(each.is_on_gpu);
            EXPECT_TRUE(each.sequence == 2 || each.sequence == 3);
        }
    }
}

/// What a rank has sent to another is as much as that has got from it, and was not there before.
TEST_P(EmulatedTimelinesTest, HaveMessagesThatEndAfterTheyBegan) {
    const auto [protocol, algorithm] = GetParam();
    const Found found = record(protocol, algorithm);
    using Way = std::tuple<Rank, Rank, int>;  // sender, receiver, channel
    std::map<Way, std::vector<TimedStep>> sent;
    std::map<Way, std::vector<TimedStep>> received;
    Duration error{};
    for (Rank rank = 0; rank < kTimelineRanks; ++rank) {
        const TimedSteps& of = found.of_rank[static_cast<std::size_t>(rank)];
        error = std::max(error, of.clock_error);
        for (const TimedStep& each : of.steps) {
            EXPECT_LE(each.begin, each.moved);
            EXPECT_LE(each.moved, each.end);
            if (each.to.is_used()) sent[{rank, each.to.peer, each.to.channel}].push_back(each);
            if (each.from.is_used())
                received[{each.from.peer, rank, each.from.channel}].push_back(each);
        }
    }
    EXPECT_FALSE(sent.empty());
    ASSERT_EQ(sent.size(), received.size());
    for (const auto& [way, sends] : sent) {
        const auto& receives = received[way];
        ASSERT_EQ(sends.size(), receives.size());
        for (std::size_t i = 0; i < sends.size(); ++i) {
            EXPECT_EQ(sends[i].bytes, receives[i].bytes);
            EXPECT_LE(sends[i].begin, receives[i].end + 2 * error);
            EXPECT_GE(sends[i].begin + error, found.before);
            EXPECT_LE(receives[i].end, found.after + error);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ways, EmulatedTimelinesTest,
                         ::testing::Combine(::testing::Values(Protocol::kLL, Protocol::kLL128,
                                                              Protocol::kDirect),
                                            ::testing::Values("ring", "double_binary_tree")),
                         [](const auto& each) {
                             return std::string(device::name_of(std::get<0>(each.param))) + "_" +
                                    std::string(std::get<1>(each.param));
                         });

TEST(EmulatedTimelineRoomTest, WhatFindsNoneIsCountedAndRuns) {
    fakes::run_device_ranks({.size = kTimelineRanks}, [&](fakes::DeviceRank& member) {
        EXPECT_TRUE(member.group.record_timeline(3).is_ok());
        add_up(member, Protocol::kLL, "ring");
        const auto taken = member.group.take_timeline();
        ASSERT_TRUE(taken.is_ok()) << taken.status().to_string();
        EXPECT_TRUE(taken->steps.empty());
        EXPECT_GT(taken->lost, 3U);
        EXPECT_EQ(member.group.record_timeline(device::DeviceGroupImpl::kMostTimedSteps + 1).code(),
                  StatusCode::kInvalidArgument);
        EXPECT_TRUE(member.group.record_timeline(0).is_ok());
        add_up(member, Protocol::kLL, "ring");
        EXPECT_EQ(member.group.take_timeline()->lost, 0U);
    });
}

}  // namespace
}  // namespace pccl::comm
