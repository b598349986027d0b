// SPDX-License-Identifier: Apache-2.0

// How schedules are laid out on GPUs, and which are refused. tests/cpp/emulated runs them.

#include "csrc/device/programs/device_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace pccl::device {
namespace {

using ::testing::HasSubstr;

std::size_t index(int i) { return static_cast<std::size_t>(i); }

TEST(DeviceGridTest, WorkersAreAsManyAsFifosAndBlocksAllow) {
    const DeviceGrid ring{.lanes = 1, .channels = 1, .chunks = 4, .longest = 1};
    EXPECT_EQ(ring.window_bytes(abi::MessageForm::kPlain), abi::kSlotBytes);
    EXPECT_EQ(ring.workers(std::size_t{1} << 30), abi::kDeviceFifos);
    EXPECT_EQ(ring.workers(1), 1);
    const DeviceGrid pairs{.lanes = 14, .channels = 1, .chunks = 1, .longest = 1};
    EXPECT_EQ(pairs.workers(std::size_t{1} << 30), abi::kMostBlocks / 14);
    const DeviceGrid long_messages{.lanes = 1, .channels = 2, .chunks = 8, .longest = 7};
    EXPECT_EQ(long_messages.workers(std::size_t{1} << 30), abi::kDeviceFifos / 2);
    for (const auto& [form, slot] : {std::pair{abi::MessageForm::kPlain, abi::kSlotBytes},
                                     std::pair{abi::MessageForm::kLL, abi::kLLSlotBytes}}) {
        EXPECT_LE(7 * long_messages.window_bytes(form), slot);
        EXPECT_EQ(long_messages.window_bytes(form) % abi::kChunkAlignment, 0U);
    }
}

/// Chunks begin with a pair of lines, and are long enough to go at all.
TEST(DeviceGridTest, TheLongestMessageFitsIntoAnLL128Slot) {
    for (const int longest : {1, 7, 64}) {
        const DeviceGrid grid{.chunks = longest, .longest = longest};
        const std::size_t window = grid.window_bytes(abi::MessageForm::kLL128);
        const std::size_t pairs = (window + abi::kPairBytes - 1) / abi::kPairBytes;
        EXPECT_LE(2 * pairs * index(longest), index(abi::kLL128SlotLines));
        EXPECT_EQ(window % abi::kChunkAlignment, 0U);
        EXPECT_GE(window, abi::kChunkAlignment);
    }
}

TEST(DeviceGridTest, LLCarriesWhatItsWindowsHold) {
    const DeviceGrid ring{.lanes = 1, .channels = 1, .chunks = 4, .longest = 1};
    const std::size_t window = 4 * abi::kLLSlotBytes * index(abi::kDeviceFifos);
    EXPECT_TRUE(ring.suits_ll(0, 1));
    for (const std::size_t windows : {1, 2}) {
        EXPECT_TRUE(ring.suits_ll(windows * window, windows));
        EXPECT_FALSE(ring.suits_ll(windows * window + 1, windows));
    }
}

/// A step knows which message of its window it is, so that threads need not count together.
TEST(DeviceTablesTest, MessagesOfAPortAreNumberedByTheirSteps) {
    const schedule::Slice input{schedule::Buffer::kInput, 0, 1};
    const schedule::Slice output{schedule::Buffer::kOutput, 0, 1};
    const schedule::Step send{.action = schedule::Action::kSend, .src = input, .to = {1, 0}};
    const schedule::Step recv{.action = schedule::Action::kRecv, .dst = output, .from = {1, 0}};
    const DeviceTables tables = tabulate({.lanes = {{send, recv, send}, {recv}}}, 1).value();
    ASSERT_EQ(tables.most_steps, 3);
    EXPECT_EQ(tables.steps[0].sent, 0);
    EXPECT_EQ(tables.steps[1].received, 0);
    EXPECT_EQ(tables.steps[2].sent, 1);
    EXPECT_EQ(tables.steps[3].received, 0);
    EXPECT_EQ(tables.ports[0].messages, 2);
    EXPECT_EQ(tables.ports[1].messages, 1);
    EXPECT_EQ(tables.ports[2].messages, 1);
}

/// Workers share FIFOs by the number of channels between two ranks, whatever these are called.
TEST(DeviceTablesTest, ChannelsBetweenTwoRanksAreNumberedWithoutGaps) {
    const schedule::Slice input{schedule::Buffer::kInput, 0, 1};
    const schedule::Slice output{schedule::Buffer::kOutput, 0, 1};
    const auto send = [&](schedule::PeerPort to) {
        return schedule::Step{.action = schedule::Action::kSend, .src = input, .to = to};
    };
    const auto recv = [&](schedule::PeerPort from) {
        return schedule::Step{.action = schedule::Action::kRecv, .dst = output, .from = from};
    };
    const schedule::Program first{.lanes = {{send({1, 7}), send({1, 3}), recv({1, 5})}}};
    const schedule::Program second{.lanes = {{recv({0, 3}), recv({0, 7}), send({0, 5})}}};
    const DeviceTables here = tabulate(first, 1).value();
    const DeviceTables there = tabulate(second, 1).value();
    const auto channel = [](const DeviceTables& tables, std::int32_t port) {
        return tables.ports[index(port)].channel;
    };
    EXPECT_EQ(channel(here, here.steps[0].to), 1);
    EXPECT_EQ(channel(here, here.steps[1].to), 0);
    EXPECT_EQ(channel(here, here.steps[2].from), 0);
    EXPECT_EQ(channel(there, there.steps[0].from), 0);
    EXPECT_EQ(channel(there, there.steps[1].from), 1);
    EXPECT_EQ(channel(there, there.steps[2].to), 0);
    const schedule::Schedule both{
        .name = "gaps", .shape = {.ranks = 2}, .programs = {first, second}};
    EXPECT_EQ(device_grid(both).value().channels, 2);
}

TEST(DeviceGridTest, WhatAGpuDoesNotRunIsRefused) {
    schedule::Schedule wide{.name = "wide", .shape = {.ranks = 1}, .programs = {{}}};
    wide.programs.front().lanes.resize(index(abi::kMostBlocks) + 1);
    EXPECT_THAT(device_grid(wide).status().message(), HasSubstr("wide with 129 lanes"));
    schedule::Schedule slow{.name = "slow", .shape = {.ranks = 1, .slots = 9}, .programs = {{}}};
    EXPECT_THAT(device_grid(slow).status().message(), HasSubstr("9 slots"));
    const schedule::Program phases{.lanes = {{{.action = schedule::Action::kSwitchPhase}}}};
    EXPECT_THAT(tabulate(phases, 1).status().message(), HasSubstr("switch_phase"));
}

}  // namespace
}  // namespace pccl::device
