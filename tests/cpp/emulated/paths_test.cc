// SPDX-License-Identifier: Apache-2.0

// What differs between GPUs that reach each other and those that meet in the host.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/few_threads.h"

namespace pccl::comm {
namespace {

using enum CollectiveKind;
using kernels::GpuPath;
using kernels::kFewThreads;

bool meets_in_host() { return fakes::path_under_test() == GpuPath::kHost; }

/// GPU memory of `count` elements of value `value`.
template <typename T>
std::span<T> elements(fakes::DeviceRank& member, std::size_t count, T value) {
    auto* const first = std::bit_cast<T*>(member.driver.allocate((count + 1) * sizeof(T)));
    std::fill_n(first, count, value);
    return {first, count};
}

template <typename T>
Block block(std::span<T> of) {
    return {std::bit_cast<std::byte*>(of.data()), of.size()};
}

TEST(EmulatedPathsTest, AGraphMayHoldTheFirstLongCall) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        for (const CollectiveKind kind : {kAllReduce, kScatter}) {
            const Case call{.kind = kind, .count = 5000, .plan = kFewThreads};
            const CaseRun run(call, member);
            member.driver.capture(true);
            const Status status = run.launch();
            ASSERT_TRUE(status.is_ok()) << status.to_string();
            member.driver.capture(false);
            run.expect_results();
        }
    });
}

/// Rank r contributes 1000 r elements of value r, so that no two blocks have one length.
TEST(EmulatedPathsTest, BlocksOfSeveralLengthsAreGathered) {
    constexpr int kRanks = 3;
    constexpr std::size_t kUnit = 1000;
    fakes::run_device_ranks({.size = kRanks}, [](fakes::DeviceRank& member) {
        const Rank rank = member.group.rank();
        const Block input = block(elements(member, kUnit * static_cast<std::size_t>(rank), rank));
        std::vector<std::span<Rank>> gathered;
        std::vector<Block> outputs;
        for (std::size_t owner = 0; owner < kRanks; ++owner) {
            gathered.push_back(elements(member, kUnit * owner, Rank{-1}));
            outputs.push_back(block(gathered.back()));
        }
        const Collective call{.kind = kAllGather,
                              .type = DataType::kInt32,
                              .inputs = {&input, 1},
                              .outputs = outputs};
        const Status status = member.group.launch(call, nullptr, {.plan = kFewThreads});
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        for (Rank owner = 0; owner < kRanks; ++owner)
            EXPECT_EQ(std::ranges::count(gathered[static_cast<std::size_t>(owner)], owner),
                      static_cast<std::ptrdiff_t>(kUnit) * owner);
        member.together.arrive_and_wait();
    });
}

/// 100 + 100 is more than an int8 holds.
TEST(EmulatedPathsTest, LongAveragesOfIntegersDoNotWrap) {
    if (!kRunsLongOnes) GTEST_SKIP() << kWhyNoLongOnes;
    constexpr std::size_t kCount = kernels::kMostLLBytes + 1000;
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        const auto values = elements<std::int8_t>(member, kCount, 100);
        const Block both = block(values);
        const Status status = member.group.launch({.kind = kAllReduce,
                                                   .type = DataType::kInt8,
                                                   .op = ReduceOp::kAvg,
                                                   .inputs = {&both, 1},
                                                   .outputs = {&both, 1}},
                                                  nullptr);
        ASSERT_TRUE(status.is_ok()) << status.to_string();
        EXPECT_EQ(std::ranges::count(values, 100), static_cast<std::ptrdiff_t>(kCount));
        member.together.arrive_and_wait();
    });
}

/// Among four GPUs, 0 and 1 reach each other, and 2 and 3.
TEST(EmulatedPathsTest, PairsThatReachEachOtherExchangeInTheirMemory) {
    if (fakes::path_under_test() != GpuPath::kHost) GTEST_SKIP() << "it runs once, for the host";
    const fakes::DeviceRanksOptions options{
        .size = 4, .prepare = [](fakes::FakeCudaDriver& driver) { driver.reach_in_pairs(); }};
    fakes::run_device_ranks(options, [](fakes::DeviceRank& member) {
        const Rank rank = member.group.rank();
        EXPECT_EQ(member.group.path(), GpuPath::kHost);
        EXPECT_EQ(member.group.linked(), bit_of(rank ^ 1));
        EXPECT_THAT(member.group.explain(kAllReduce, 1 << 20).front().why,
                    ::testing::HasSubstr("some for schedules in the GPUs' memory"));
        for (const CollectiveKind kind : {kAllReduce, kAllGather, kAllToAll, kBroadcast}) {
            const Case call{.kind = kind, .count = 5000, .plan = kFewThreads};
            const CaseRun run(call, member);
            const Status status = run.launch();
            ASSERT_TRUE(status.is_ok()) << status.to_string();
            run.expect_results();
        }
    });
}

TEST(EmulatedPathsTest, UsersReadWhatRunsAndWhy) {
    fakes::run_device_ranks({.size = 2}, [](fakes::DeviceRank& member) {
        const auto explained = [&](CollectiveKind kind, std::size_t bytes) {
            return member.group.explain(kind, bytes).front();
        };
        EXPECT_EQ(explained(kAllReduce, 1000).kernel, "all_reduce");
        const bool is_host = meets_in_host();
        const bool is_nvlink = fakes::path_under_test() == GpuPath::kPeer;
        EXPECT_EQ(explained(kAllReduce, 1 << 20).kernel,
                  is_nvlink ? "all_reduce" : "program of ring");
        EXPECT_EQ(explained(kGather, 1 << 20).kernel, is_host ? "pairs" : "all_to_all");
        const std::string why = explained(kAllReduce, 1000).why;
        EXPECT_EQ(why.find("host memory (rank 0: PCCL_GPU_PEER_ACCESS=0)") != std::string::npos,
                  is_host)
            << why;
    });
}

}  // namespace
}  // namespace pccl::comm
