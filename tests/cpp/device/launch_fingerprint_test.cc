// SPDX-License-Identifier: Apache-2.0

// What ranks of one call have alike, though their sides of it differ, and what tells calls apart.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "csrc/device/launch/lowering.h"
#include "csrc/schedule/generators/generators.h"

namespace pccl::device {
namespace {

using enum CollectiveKind;
using kernels::LaunchPlan;

constexpr std::uint32_t kLowerHalf = 0xFFFF;

std::uint32_t of(const Collective& collective, const DeviceLaunch& wanted = {}) {
    return launch_fingerprint({&collective, 1}, wanted);
}

Collective all_reduce(std::span<const Block> block) {
    return {.kind = kAllReduce, .inputs = block, .outputs = block};
}

TEST(LaunchFingerprintTest, LeavesTheLowerHalfToTheEpoch) {
    for (std::size_t count = 1; count < 100; ++count) {
        const Block block{nullptr, count};
        EXPECT_EQ(of(all_reduce({&block, 1})) & kLowerHalf, 0U);
    }
}

/// Blocks differ in number and place by rank: those of a broadcast, a reduce, a gather, a scatter.
TEST(LaunchFingerprintTest, IsAlikeOnAllRanksOfACall) {
    const std::array<Block, 3> own{{{nullptr, 7}, {nullptr, 7}, {nullptr, 7}}};
    const std::span<const Block> one(own.data(), 1);
    const auto both = [](CollectiveKind kind, std::span<const Block> inputs,
                         std::span<const Block> outputs) {
        return of({.kind = kind, .root = 1, .inputs = inputs, .outputs = outputs});
    };
    EXPECT_EQ(both(kBroadcast, one, one), both(kBroadcast, {}, one));
    EXPECT_EQ(both(kReduce, one, one), both(kReduce, one, {}));
    EXPECT_EQ(both(kGather, one, own), both(kGather, one, {}));
    EXPECT_EQ(both(kScatter, own, one), both(kScatter, {}, one));
}

/// Those of which some ranks see their own block alone.
TEST(LaunchFingerprintTest, IsAlikeOnAllRanksOfAnUnevenCall) {
    const std::array<Block, 3> all{{{nullptr, 7}, {nullptr, 0}, {nullptr, 9}}};
    const auto of_rank = [&](CollectiveKind kind, std::size_t rank) {
        const std::span<const Block> own(&all[rank], 1);
        const bool gathers = kind == kAllGather;
        return of({.kind = kind,
                   .inputs = gathers ? own : std::span<const Block>(all),
                   .outputs = gathers ? std::span<const Block>(all) : own});
    };
    for (const CollectiveKind kind : {kAllGather, kReduceScatter})
        for (const std::size_t rank : {1U, 2U}) EXPECT_EQ(of_rank(kind, 0), of_rank(kind, rank));
}

/// An operator where nothing is reduced, a root where nobody is.
TEST(LaunchFingerprintTest, LeavesOutWhatMeansNothing) {
    const std::array<Block, 2> blocks{{{nullptr, 3}, {nullptr, 3}}};
    Collective call{.kind = kAllGather, .inputs = std::span(blocks).first(1), .outputs = blocks};
    const std::uint32_t before = of(call);
    call.op = ReduceOp::kMax;
    call.root = 1;
    EXPECT_EQ(of(call), before);
    call.kind = kAllReduce;
    const std::uint32_t of_max = of(call);
    call.root = 0;
    EXPECT_EQ(of(call), of_max);
}

/// Which only the two ranks of a block know.
TEST(LaunchFingerprintTest, LeavesOutPrivateLengths) {
    const std::array<Block, 2> ours{{{nullptr, 3}, {nullptr, 5}}};
    const std::array<Block, 2> theirs{{{nullptr, 5}, {nullptr, 0}}};
    const Collective here{.kind = kAllToAll, .inputs = ours, .outputs = theirs};
    const Collective there{.kind = kAllToAll, .inputs = theirs, .outputs = theirs};
    EXPECT_EQ(of(here), of(there));
    const std::span<const Block> longer(ours.data() + 1, 1);
    EXPECT_EQ(of({.kind = kGather, .inputs = longer}),
              of({.kind = kGather, .inputs = std::span(ours).first(1)}));
}

TEST(LaunchFingerprintTest, DiffersWhereLaunchesMustAgree) {
    const std::array<Block, 3> blocks{{{nullptr, 64}, {nullptr, 64}, {nullptr, 65}}};
    const std::span<const Block> one(blocks.data(), 1);
    const Collective call = all_reduce(one);
    const Collective exchange{.kind = kAllToAll, .inputs = one, .outputs = one};
    const Collective even{.kind = kAllToAll, .inputs = one, .outputs = one, .is_even = true};
    Collective other = call;
    std::vector<std::uint32_t> all{of(call)};
    const auto add = [&] { all.push_back(of(std::exchange(other, call))); };
    other.type = DataType::kInt32;
    add();
    other.op = ReduceOp::kMax;
    add();
    other.kind = kReduce;
    add();
    other.kind = kReduce;
    other.root = 1;
    add();
    other.inputs = other.outputs = std::span(blocks).subspan(2);
    add();
    other.kind = kAllGather;
    other.outputs = std::span(blocks).first(2);
    add();
    other.kind = kAllGather;
    other.outputs = blocks;
    add();
    all.push_back(of(call, {.plan = LaunchPlan{}}));
    all.push_back(of(call, {.plan = LaunchPlan{.blocks = 2}}));
    all.push_back(of(call, {.schedule = schedule::built_in("ring", call.kind).value()}));
    all.push_back(of(exchange));
    all.push_back(of(even));
    const std::array<Collective, 2> twice{call, call};
    all.push_back(launch_fingerprint(twice, {}));
    EXPECT_THAT(all, testing::WhenSorted(testing::Truly([](std::vector<std::uint32_t> sorted) {
                    return std::ranges::adjacent_find(sorted) == sorted.end();
                })));
}

}  // namespace
}  // namespace pccl::device
