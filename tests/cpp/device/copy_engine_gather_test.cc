// SPDX-License-Identifier: Apache-2.0

// What copy engines pull, from pointers that kernels leave. How they pull it is tested in
// tests/gpu.

#include "csrc/device/copy_engine_gather.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <memory>

#include "csrc/device/launch/lowering.h"
#include "tests/fakes/fake_cuda.h"

namespace pccl::device {
namespace {

using schedule::CollectiveKind;
using sys::cuda::DeviceAddress;

constexpr std::size_t kBlock = 4096;
constexpr std::uint64_t kPeersInput = 0x70000;

class CopyEngineGatherTest : public testing::Test {
   protected:
    /// An all_gather of two ranks on rank 0, whose input is `own`.
    kernels::Pull pull_from(const std::byte* own) {
        kernels::Pull pull{};
        pull.team.size = 2;
        for (std::size_t peer = 0; peer < 2; ++peer) {
            pull.outputs[peer] = output_.data() + peer * kBlock;
            pull.bytes[peer] = kBlock;
        }
        gather_.use_cached_pointers(pull, CollectiveKind::kAllGather, own);
        return pull;
    }

    std::array<abi::CachedPointers, abi::kMostCachedPointers> pointer_cache_{};
    std::array<std::byte, kBlock> input_{};
    std::array<std::byte, 2 * kBlock> output_{};
    DeviceAddress mapped_end_ = kPeersInput + kBlock;
    fakes::FakeCudaDriver driver_{std::make_shared<fakes::FakeGpus>()};
    CopyEngineGather gather_{{.driver = driver_,
                              .cached_pointers = pointer_cache_,
                              .is_mapped = [this](DeviceAddress address, std::size_t bytes) {
                                  return address >= kPeersInput && address + bytes <= mapped_end_;
                              }}};
};

TEST_F(CopyEngineGatherTest, TheFirstOfItsKindPullsItsOwnBlockAlone) {
    const kernels::Pull pull = pull_from(input_.data());
    EXPECT_EQ(pull.pulled[0], input_.data());
    EXPECT_EQ(pull.pulled[1], nullptr);
    ASSERT_NE(pull.cached_pointers, nullptr);
}

TEST_F(CopyEngineGatherTest, WhatIsInItsPlaceIsNotPulled) {
    EXPECT_EQ(pull_from(output_.data()).pulled[0], nullptr);
}

TEST_F(CopyEngineGatherTest, LaterOnesPullFromWhereTheInputWas) {
    pull_from(input_.data()).cached_pointers->inputs[1] = kPeersInput;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(pull_from(input_.data()).pulled[1]), kPeersInput);
    EXPECT_EQ(pull_from(output_.data()).pulled[1], nullptr) << "of another kind";
}

TEST_F(CopyEngineGatherTest, MemoryThatIsNotMappedIsNotTouched) {
    pull_from(input_.data()).cached_pointers->inputs[1] = kPeersInput + 1;
    EXPECT_EQ(pull_from(input_.data()).pulled[1], nullptr);
}

TEST_F(CopyEngineGatherTest, ANewKindTakesTheEntryThatWasUsedLongestAgo) {
    std::array<std::byte, abi::kMostCachedPointers> inputs{};
    abi::CachedPointers* const oldest = pull_from(input_.data()).cached_pointers;
    oldest->inputs[1] = kPeersInput;
    for (std::size_t i = 1; i < inputs.size(); ++i)
        EXPECT_NE(pull_from(&inputs[i]).cached_pointers, oldest);
    const kernels::Pull pull = pull_from(&inputs[0]);
    EXPECT_EQ(pull.cached_pointers, oldest);
    EXPECT_EQ(pull.pulled[1], nullptr);
}

TEST(IsPulledTest, OnlyWhatIsMovedInBlocksOfKnownLengths) {
    const auto is_pulled_of = [](const Collective& collective) {
        return is_pulled(collective, kernels::copy_engine_plan());
    };
    EXPECT_TRUE(is_pulled_of({.kind = CollectiveKind::kAllGather}));
    EXPECT_TRUE(is_pulled_of({.kind = CollectiveKind::kAllToAll, .is_even = true}));
    EXPECT_FALSE(is_pulled_of({.kind = CollectiveKind::kAllToAll}));
    EXPECT_FALSE(is_pulled_of({.kind = CollectiveKind::kAllReduce}));
    EXPECT_FALSE(is_pulled_of({.kind = CollectiveKind::kScatter}));
}

TEST(IsPulledTest, LargeBlocksWhereThatIsPreferred) {
    const auto protocol_of = [](std::size_t count, bool prefers_copy_engines) {
        std::byte memory{};
        const std::array<Block, 2> blocks{{{&memory, count}, {&memory, count}}};
        const Collective gather{
            .kind = CollectiveKind::kAllGather, .inputs = {blocks.data(), 1}, .outputs = blocks};
        const auto launch =
            lower(gather, {.preferences = {.copy_engines = prefers_copy_engines}}, 0, 2);
        EXPECT_TRUE(launch.is_ok());
        return launch->plan.protocol;
    };
    EXPECT_EQ(protocol_of(std::size_t{8} << 20, true), kernels::Protocol::kCopyEngine);
    EXPECT_NE(protocol_of(std::size_t{8} << 20, false), kernels::Protocol::kCopyEngine);
    EXPECT_NE(protocol_of(1000, true), kernels::Protocol::kCopyEngine);
}

}  // namespace
}  // namespace pccl::device
