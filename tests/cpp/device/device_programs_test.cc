// SPDX-License-Identifier: Apache-2.0

// The programs of a group of GPUs, on a driver in host memory: what lies there, and what is
// refused.

#include "csrc/device/programs/device_programs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/schedule/generators/generators.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::device {
namespace {

using ::testing::HasSubstr;

constexpr int kRanks = 4;

class DeviceProgramsTest : public ::testing::Test {
   protected:
    [[nodiscard]] Collective all_reduce() const {
        return {.kind = CollectiveKind::kAllReduce, .inputs = blocks_, .outputs = blocks_};
    }

    static schedule::SourcePtr named(std::string_view name) {
        return schedule::built_in(name, CollectiveKind::kAllReduce).value();
    }

    std::vector<float> data_ = std::vector<float>(1 << 20);
    std::array<Block, 1> blocks_{Block{std::bit_cast<std::byte*>(data_.data()), data_.size()}};
    fakes::FakeCudaDriver driver_{std::make_shared<fakes::FakeGpus>()};
    DevicePrograms programs_{{.driver = driver_, .device = 0, .rank = 1, .size = kRanks}};
};

TEST_F(DeviceProgramsTest, ALaunchHasTheTablesOfItsRank) {
    const auto run = programs_.prepare(all_reduce(), named("ring"));
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    const auto made = schedule::generate(
        "ring",
        {.kind = CollectiveKind::kAllReduce, .ranks = kRanks, .chunks = kRanks, .slots = 2});
    ASSERT_TRUE(made.is_ok());
    const auto tables = tabulate(made->programs[1], kRanks);
    ASSERT_TRUE(tables.is_ok());
    const abi::DeviceProgram& program = run->program;
    EXPECT_EQ(program.lane_count, 1);
    EXPECT_EQ(program.chunk_bytes, std::size_t{1 << 22} / kRanks);
    const std::size_t bytes = tables->steps.size() * sizeof(abi::DeviceStep);
    EXPECT_EQ(std::memcmp(program.steps, tables->steps.data(), bytes), 0);
    EXPECT_EQ(std::bit_cast<sys::cuda::DeviceAddress>(program.states.with[0]), programs_.state());
    EXPECT_EQ(run->plan.blocks, abi::kDeviceFifos);
    EXPECT_EQ(run->bytes, data_.size() * sizeof(float));
    EXPECT_EQ(run->inputs[0], blocks_[0].data);
    EXPECT_TRUE(run->reduces);
}

TEST_F(DeviceProgramsTest, LaunchesOfOneKindShareAProgramAndAllShareAState) {
    const auto first = programs_.prepare(all_reduce(), named("ring"));
    const auto again = programs_.prepare(all_reduce(), named("ring"));
    const auto other = programs_.prepare(all_reduce(), named("two_shot"));
    ASSERT_TRUE(first.is_ok() && again.is_ok() && other.is_ok());
    EXPECT_EQ(first->program.steps, again->program.steps);
    EXPECT_NE(first->program.steps, other->program.steps);
    EXPECT_EQ(first->program.states.with[0], other->program.states.with[0]);
}

TEST_F(DeviceProgramsTest, TheStateBeginsEmptyAndFitsTheBudget) {
    ASSERT_TRUE(programs_.prepare(all_reduce(), named("ring")).is_ok());
    const auto* const state = std::bit_cast<const abi::DeviceProgramState*>(programs_.state());
    EXPECT_EQ(state->peers[kRanks - 1], nullptr);
    EXPECT_EQ(state->fifos[kRanks - 1][abi::kDeviceFifos - 1].counters[0].sent, 0U);
    EXPECT_LE(abi::state_bytes(abi::kMostDevices), std::size_t{177} << 20);
}

TEST_F(DeviceProgramsTest, TheStateIsInUseUntilPeersHaveTakenAllMessages) {
    EXPECT_TRUE(programs_.await_taken(Deadline::after(std::chrono::seconds(0))));
    ASSERT_TRUE(programs_.prepare(all_reduce(), named("ring")).is_ok());
    for (auto& counters : std::bit_cast<abi::DeviceProgramState*>(programs_.state())
                              ->fifos[2][abi::kDeviceFifos - 1]
                              .counters) {
        counters.sent = 3;
        counters.emptied = 2;
        EXPECT_FALSE(programs_.await_taken(Deadline::after(std::chrono::milliseconds(5))));
        counters.emptied = 3;
        EXPECT_TRUE(programs_.await_taken(Deadline::after(std::chrono::seconds(20))));
    }
}

TEST_F(DeviceProgramsTest, APlanBoundsTheBlocks) {
    const kernels::LaunchPlan few{.blocks = 11, .threads = 256};
    const auto ring = programs_.prepare(all_reduce(), named("ring"), few);
    ASSERT_TRUE(ring.is_ok()) << ring.status().to_string();
    EXPECT_EQ(ring->plan, few);
    EXPECT_EQ(ring->program.workers, 11);
    const auto tree = programs_.prepare(all_reduce(), named("double_binary_tree"), few);
    ASSERT_TRUE(tree.is_ok()) << tree.status().to_string();
    EXPECT_EQ(tree->plan.blocks, 8);  // of two workers for each of four lanes
    EXPECT_EQ(tree->program.workers, 2);
}

TEST_F(DeviceProgramsTest, ShortMessagesGoByLLUnlessThePlanHasAnotherProtocol) {
    using enum kernels::Protocol;
    const auto protocol = [this](std::size_t count,
                                 const std::optional<kernels::LaunchPlan>& plan) {
        const std::array<Block, 1> blocks{Block{blocks_[0].data, count}};
        const Collective collective{.inputs = blocks, .outputs = blocks};
        const auto run = programs_.prepare(collective, named("ring"), plan);
        EXPECT_TRUE(run.is_ok()) << run.status().to_string();
        EXPECT_EQ(run->plan.threads % 32, 0);
        EXPECT_GE(run->plan.threads, abi::kLeastProgramThreads);
        EXPECT_EQ(run->program.window_bytes,
                  run->plan.protocol == kLL ? abi::kLLSlotBytes : abi::kSlotBytes);
        return run->plan.protocol;
    };
    EXPECT_EQ(protocol(1, std::nullopt), kLL);
    EXPECT_EQ(protocol(1 << 16, std::nullopt), kLL);
    EXPECT_EQ(protocol(data_.size(), std::nullopt), kDirect);
    EXPECT_EQ(protocol(1, kernels::LaunchPlan{kDirect, 4}), kDirect);
    EXPECT_EQ(protocol(data_.size(), kernels::LaunchPlan{kLL, 4}), kLL);
}

/// A ring's chunk is a fourth of the data.
TEST_F(DeviceProgramsTest, MessagesOfAMiddlingLengthGoByLL128WhereItsLinesComeWhole) {
    using enum kernels::Protocol;
    const auto protocols = [this](const DeviceProgramOptions& options) {
        DevicePrograms programs(options);
        std::vector<kernels::Protocol> found;
        for (const std::size_t chunk : {1, 256, 257, 2048, 2049}) {
            const std::array<Block, 1> blocks{Block{blocks_[0].data, kRanks * chunk * 1024}};
            const Collective collective{
                .type = DataType::kUint8, .inputs = blocks, .outputs = blocks};
            const auto run = programs.prepare(collective, named("ring"));
            EXPECT_TRUE(run.is_ok()) << run.status().to_string();
            found.push_back(run->plan.protocol);
        }
        return found;
    };
    DeviceProgramOptions options{.driver = driver_, .device = 0, .rank = 1, .size = kRanks};
    using Protocols = std::vector<kernels::Protocol>;
    const Protocols without{kLL, kLL, kLL, kDirect, kDirect};
    EXPECT_EQ(protocols(options), without);
    options.preferences.protocol = kLL128;
    EXPECT_EQ(protocols(options), without);
    options.ll128 = abi::LL128Trial::kTorn;
    EXPECT_EQ(protocols(options), without);
    options.ll128 = abi::LL128Trial::kWhole;
    EXPECT_EQ(protocols(options), Protocols(5, kLL128));
    options.preferences.protocol.reset();
    EXPECT_EQ(protocols(options), (Protocols{kLL, kLL, kLL128, kLL128, kDirect}));
    options.preferences.protocol = kStaggered;
    EXPECT_EQ(protocols(options), Protocols(5, kDirect));
}

TEST_F(DeviceProgramsTest, APlanOfLL128IsRefusedWhereItsLinesDoNotComeWhole) {
    const kernels::LaunchPlan plan{.protocol = kernels::Protocol::kLL128, .blocks = 8};
    const Status status = programs_.prepare(all_reduce(), named("ring"), plan).status();
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("do not arrive whole between these GPUs"));
}

TEST_F(DeviceProgramsTest, PlansThatNoScheduleRunsInAreRefused) {
    const auto refusal = [this](const kernels::LaunchPlan& plan) {
        const Status status =
            programs_.prepare(all_reduce(), named("double_binary_tree"), plan).status();
        EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
        return std::string(status.message());
    };
    EXPECT_THAT(refusal({.blocks = 3}), HasSubstr("one for each of its 4 lanes"));
    EXPECT_THAT(refusal({.blocks = 8, .threads = 128}), HasSubstr("192 threads at least"));
    EXPECT_THAT(refusal({.protocol = kernels::Protocol::kStaggered, .blocks = 8}),
                HasSubstr("protocol direct, ll or ll128"));
    EXPECT_THAT(refusal({.blocks = 1000}), HasSubstr("a plan of 1000 blocks"));
}

TEST_F(DeviceProgramsTest, WhatNoScheduleMakesIsRefused) {
    const auto bruck = schedule::built_in("bruck", CollectiveKind::kAllGather).value();
    const Status wrong = programs_.prepare(all_reduce(), bruck).status();
    EXPECT_EQ(wrong.code(), StatusCode::kUnsupported);
    EXPECT_THAT(wrong.message(), HasSubstr("bruck does not make all_reduce"));
    EXPECT_EQ(programs_.state(), 0U);
}

TEST_F(DeviceProgramsTest, WithoutMemoryNothingIsKept) {
    driver_.fail("allocate", Status::resource_exhausted("cuMemAlloc: out of memory"));
    EXPECT_EQ(programs_.prepare(all_reduce(), named("ring")).status().code(),
              StatusCode::kResourceExhausted);
    EXPECT_EQ(programs_.state(), 0U);
}

}  // namespace
}  // namespace pccl::device
