// SPDX-License-Identifier: Apache-2.0

// What a group's memory holds after many launches, or after one that failed: kernels on heaps that
// tests have prepared, without a group.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <vector>

#include "csrc/abi/device_team.h"
#include "csrc/kernels/launch.h"
#include "tests/cpp/emulated/bare_ranks.h"
#include "tests/cpp/emulated/few_threads.h"

namespace pccl::kernels {
namespace {

constexpr int kEpochRanks = 2;

using Tensor = std::vector<std::int32_t>;

/// A pair, and how it is launched.
class Pair : public BareRanks {
   public:
    Pair() : BareRanks(kEpochRanks) {}

    void set_epochs(std::uint32_t epoch) {
        for (int rank = 0; rank < kEpochRanks; ++rank)
            for (abi::BlockChannel& channel : heap(rank).channels) channel.epoch = epoch;
    }
    void set_exits(std::uint32_t epoch) {
        for (int rank = 0; rank < kEpochRanks; ++rank)
            for (abi::BlockChannel& channel : heap(rank).channels)
                for (std::uint32_t& exited : channel.exited) exited = epoch;
    }
    [[nodiscard]] std::uint32_t epoch() { return heap(0).channels[0].epoch; }

    [[nodiscard]] Launch launch(int rank, const Tensor& input, Tensor& output,
                                const LaunchPlan& plan) {
        Launch launch{.team = team(rank), .type = DataType::kInt32, .plan = plan};
        for (std::size_t peer = 0; peer < kEpochRanks; ++peer) {
            launch.peer_pointers.inputs[peer] = std::bit_cast<std::uint64_t>(input.data());
            launch.peer_pointers.outputs[peer] = std::bit_cast<std::uint64_t>(output.data());
        }
        launch.blocks.inputs[0] = std::bit_cast<const std::byte*>(input.data());
        launch.blocks.outputs[0] = std::bit_cast<std::byte*>(output.data());
        launch.blocks.bytes[0] = input.size() * sizeof(std::int32_t);
        return launch;
    }
};

TEST(EmulatedEpochsTest, AlternateAlsoWhereTheyWrap) {
    Pair pair;
    pair.set_epochs(UINT32_MAX - 3);
    std::array<Tensor, kEpochRanks> outputs{Tensor(100), Tensor(100)};
    for (int time = 0; time < 8; ++time) {
        const std::uint32_t before = pair.epoch();
        const LaunchPlan plan = time % 2 == 0 ? ll_plan(400) : kFewThreads;
        on_both_ranks([&](int rank) {
            const Tensor input(100, time + rank);
            Tensor& output = outputs.at(static_cast<std::size_t>(rank));
            EXPECT_TRUE(launch_all_reduce(pair.launch(rank, input, output, plan), nullptr).is_ok());
            EXPECT_FALSE(pair.has_given_up(rank));
        });
        for (const Tensor& output : outputs) EXPECT_EQ(output, Tensor(100, 2 * time + 1));
        EXPECT_NE(before % 2, pair.epoch() % 2) << "lines of both lie in one place";
        EXPECT_NE(pair.epoch(), 0U) << "what memory holds before the first";
    }
}

/// The root of a broadcast only waits until the other has pulled its tensor.
TEST(EmulatedEpochsTest, AnExitOfLongAgoIsNotTakenForOneOfToday) {
    Pair pair;
    pair.set_exits(5);
    pair.set_epochs(5 + (std::uint32_t{1} << 31));
    Tensor source(4'000'000);
    std::iota(source.begin(), source.end(), 1);
    const Tensor wanted = source;
    Tensor got(source.size());
    on_both_ranks([&](int rank) {
        Tensor& tensor = rank == 0 ? source : got;
        Launch launch = pair.launch(rank, tensor, tensor, kFewThreads);
        launch.root = 0;
        EXPECT_TRUE(launch_broadcast(launch, nullptr).is_ok());
        if (rank == 0) std::ranges::fill(source, -1);
    });
    EXPECT_EQ(got, wanted);
}

TEST(EmulatedEpochsTest, WhoHasGivenUpIsNoLongerWrittenTo) {
    Pair pair;
    std::array<Tensor, kEpochRanks> outputs{Tensor(100, 7), Tensor(100, 7)};
    for (const int rank : {0, 1}) {
        const Tensor input(100, 1);
        Launch launch =
            pair.launch(rank, input, outputs.at(static_cast<std::size_t>(rank)), kFewThreads);
        launch.team.timeout_ns = 200'000'000;
        EXPECT_TRUE(launch_all_reduce(launch, nullptr).is_ok());
        EXPECT_TRUE(pair.has_given_up(rank));
    }
    for (const Tensor& output : outputs) EXPECT_EQ(output, Tensor(100, 7));
}

}  // namespace
}  // namespace pccl::kernels
