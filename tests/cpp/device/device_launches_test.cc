// SPDX-License-Identifier: Apache-2.0

// Calls that a group of GPUs refuses or launches, and what follows after a failure.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <functional>
#include <thread>

#include "csrc/device/device_group.h"
#include "csrc/schedule/generators/generators.h"
#include "tests/cpp/device/group_calls.h"
#include "tests/fakes/device_ranks.h"

namespace pccl::device {
namespace {

using fakes::DeviceRank;
using fakes::run_device_ranks;
using ::testing::HasSubstr;

TEST(DeviceGroupTest, WrongCallsAreRefusedBeforeAnythingIsLaunched) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        Block block = block_of(x);
        const Collective right{.inputs = {&block, 1}, .outputs = {&block, 1}};
        const auto code_of = [&](const Collective& collective, const DeviceLaunch& wanted = {}) {
            return member.group.launch(collective, nullptr, wanted).code();
        };
        Collective wrong = right;
        wrong.op = ReduceOp::kBand;
        EXPECT_EQ(code_of(wrong), StatusCode::kUnsupported);
        wrong = right;
        wrong.kind = CollectiveKind::kBroadcast;
        wrong.root = 2;
        EXPECT_EQ(code_of(wrong), StatusCode::kInvalidArgument);
        wrong = right;
        wrong.kind = CollectiveKind::kAllToAll;
        EXPECT_EQ(code_of(wrong), StatusCode::kInvalidArgument);
        EXPECT_EQ(code_of(right, {.plan = kernels::LaunchPlan{.blocks = 1000}}),
                  StatusCode::kInvalidArgument);
        block.data = nullptr;
        EXPECT_EQ(code_of(right), StatusCode::kInvalidArgument);
        block.count = 0;
        EXPECT_EQ(code_of(right), StatusCode::kOk);
    });
}

TEST(DeviceGroupTest, MessagesToNobodyAreRefused) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        const PeerMessage wrong{.peer = 2, .data = block_of(x).data, .bytes = 8};
        EXPECT_EQ(member.group.exchange({.sends = {&wrong, 1}}, nullptr).code(),
                  StatusCode::kInvalidArgument);
        const PeerMessage empty{.peer = 1, .data = nullptr, .bytes = 0};
        EXPECT_TRUE(member.group.exchange({.receives = {&empty, 1}}, nullptr).is_ok());
    });
}

TEST(DeviceGroupTest, AfterAnAbortNothingIsLaunched) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        const bool is_first = member.group.rank() == 0;
        if (is_first) member.group.abort();
        while (member.group.health().is_ok()) std::this_thread::yield();
        const StatusCode code = is_first ? StatusCode::kAborted : StatusCode::kPeerLost;
        const Block block = block_of(x);
        const Collective call{.inputs = {&block, 1}, .outputs = {&block, 1}};
        EXPECT_EQ(member.group.launch(call, nullptr).code(), code);
        const PeerMessage message{.peer = 1, .data = block.data, .bytes = 8};
        EXPECT_EQ(member.group.exchange({.sends = {&message, 1}}, nullptr).code(), code);
        EXPECT_FALSE(member.group.has_given_up());
    });
}

/// Its peers may wait for what it has not launched.
TEST(DeviceGroupTest, ALaunchThatFailsOnOneRankEndsTheGroupOnAll) {
    constexpr std::size_t kCount = 1 << 20;
    run_device_ranks({.size = 3}, [](DeviceRank& member) {
        const auto base = member.driver.allocate(kCount * sizeof(float));
        member.driver.make_unshareable(base);
        member.driver.fail("allocate", Status::resource_exhausted("no more GPU memory"));
        if (member.group.rank() == 1) {
            const Block block{std::bit_cast<std::byte*>(base), kCount};
            const Collective call{.inputs = {&block, 1}, .outputs = {&block, 1}};
            for (int time = 0; time < 2; ++time)
                EXPECT_EQ(member.group.launch(call, nullptr).code(),
                          StatusCode::kResourceExhausted);
            return;
        }
        while (member.group.health().is_ok()) std::this_thread::yield();
        EXPECT_EQ(member.group.health().code(), StatusCode::kPeerLost);
        EXPECT_EQ(member.group.health().peer(), 1);
        EXPECT_THAT(member.group.health().message(), HasSubstr("no more GPU memory"));
    });
}

TEST(DeviceGroupTest, DetectsCapturedStreams) {
    run_device_ranks({.size = 1}, [](DeviceRank& member) {
        EXPECT_FALSE(member.group.is_captured(nullptr));
        member.driver.capture(true);
        EXPECT_TRUE(member.group.is_captured(nullptr));
        member.driver.capture(false);
        member.driver.fail("capture_of", Status::internal("another stream is captured"));
        EXPECT_TRUE(member.group.is_captured(nullptr));
    });
}

TEST(DeviceGroupTest, TheFirstScheduleIsNotCaptured) {
    run_device_ranks({.size = 2}, [](DeviceRank& member) {
        std::array<float, 2> x{};
        const Block block = block_of(x);
        const Collective call{.inputs = {&block, 1}, .outputs = {&block, 1}};
        member.driver.capture(true);
        const Status status = member.group.launch(
            call, nullptr, {.schedule = schedule::built_in("ring", call.kind).value()});
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        EXPECT_THAT(status.message(), HasSubstr("call it once before"));
    });
}

}  // namespace
}  // namespace pccl::device
