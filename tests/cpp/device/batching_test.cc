// SPDX-License-Identifier: Apache-2.0

// Which collectives share a launch, and how.

#include "csrc/device/launch/batching.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace pccl::device {
namespace {

/// Collectives of floats in memory that nobody touches.
class BatchingTest : public testing::Test {
   protected:
    Collective& add(CollectiveKind kind, std::size_t count) {
        const std::size_t ranks = 2;
        auto& blocks = blocks_.emplace_back();
        for (std::size_t rank = 0; rank < ranks; ++rank)
            blocks.push_back({memory_.data() + rank * count * sizeof(float), count});
        const std::span<const Block> all(blocks);
        const bool has_inputs = kind == CollectiveKind::kReduceScatter;
        const bool has_outputs = kind == CollectiveKind::kAllGather;
        return collectives_.emplace_back(Collective{.kind = kind,
                                                    .inputs = has_inputs ? all : all.first(1),
                                                    .outputs = has_outputs ? all : all.first(1)});
    }
    void add_many(int number, CollectiveKind kind, std::size_t count) {
        for (int i = 0; i < number; ++i) add(kind, count);
    }
    [[nodiscard]] std::size_t length(int ranks = 2) const {
        return batch_length(collectives_, preferences_, ranks);
    }
    [[nodiscard]] std::size_t large_length(int ranks = 2) const {
        return large_batch_length(collectives_, preferences_, ranks);
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(2 << 20);
    std::vector<std::vector<Block>> blocks_;
    std::vector<Collective> collectives_;
    Preferences preferences_;
};

TEST_F(BatchingTest, TakesWhatIsAlike) {
    add_many(3, CollectiveKind::kAllReduce, 100);
    add(CollectiveKind::kAllGather, 100);
    EXPECT_EQ(length(), 3U);
    collectives_[1].op = ReduceOp::kMax;
    EXPECT_EQ(length(), 1U);
    collectives_[1].op = ReduceOp::kSum;
    collectives_[2].type = DataType::kInt32;
    EXPECT_EQ(length(), 2U);
}

TEST_F(BatchingTest, TakesNoMoreThanOneLaunchHolds) {
    add_many(kernels::kMostParts + 5, CollectiveKind::kAllReduce, 3);
    EXPECT_EQ(length(), static_cast<std::size_t>(kernels::kMostParts));
    collectives_.clear();
    add_many(3, CollectiveKind::kAllReduce, kernels::kMostLLBytes / sizeof(float) / 2);
    EXPECT_EQ(length(2), 2U);
    EXPECT_EQ(length(8), 1U) << "7 times as much leaves a GPU";
}

TEST_F(BatchingTest, LargeOnesAndMessagesOfEachToEachGoAlone) {
    add_many(2, CollectiveKind::kAllReduce, kernels::kMostLLBytes / sizeof(float) + 1);
    EXPECT_EQ(length(), 1U);
    collectives_.clear();
    add_many(2, CollectiveKind::kAllToAll, 1);
    EXPECT_EQ(length(), 1U);
}

TEST_F(BatchingTest, BlocksOfSeveralLengthsGoAlone) {
    add_many(2, CollectiveKind::kAllGather, 5);
    blocks_[0][1].count = 4;
    EXPECT_EQ(length(), 1U);
}

TEST_F(BatchingTest, PartsFollowOneAnotherInWholeWords) {
    add(CollectiveKind::kReduceScatter, 3);
    add(CollectiveKind::kReduceScatter, 0);
    add(CollectiveKind::kReduceScatter, 8);
    const auto batch = make_batch(collectives_, preferences_.most_blocks, 1, 2);
    ASSERT_TRUE(batch.is_ok()) << batch.status().to_string();
    EXPECT_EQ(batch->count, 3);
    EXPECT_TRUE(batch->reduces);
    EXPECT_EQ(batch->parts[1].first_word, 2U);
    EXPECT_EQ(batch->parts[2].first_word, 2U);
    EXPECT_EQ(batch->words, 6U);
    EXPECT_EQ(batch->parts[0].inputs[1], memory_.data() + 3 * sizeof(float));
    EXPECT_EQ(batch->parts[2].outputs[0], memory_.data());
    EXPECT_TRUE(kernels::check_plan(batch->plan, batch->words * abi::kLLDataBytes).is_ok());
}

TEST_F(BatchingTest, AWrongOneIsRefused) {
    add_many(2, CollectiveKind::kAllReduce, 5);
    collectives_[1].outputs = {};
    EXPECT_EQ(make_batch(collectives_, preferences_.most_blocks, 0, 2).status().code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(make_large_batch(collectives_, preferences_.most_blocks, 0, 2).status().code(),
              StatusCode::kInvalidArgument);
    collectives_.clear();
    add(CollectiveKind::kAllReduce, 5).op = ReduceOp::kBand;
    EXPECT_EQ(make_batch(collectives_, preferences_.most_blocks, 0, 2).status().code(),
              StatusCode::kUnsupported);
}

TEST_F(BatchingTest, LargeBatchesTakeSmallOnesToo) {
    add_many(3, CollectiveKind::kAllReduce, 100'000);
    add(CollectiveKind::kAllReduce, 1);
    EXPECT_EQ(large_length(), 4U);
    collectives_[3].type = DataType::kInt32;
    EXPECT_EQ(large_length(), 3U);
    add_many(2 * kernels::kMostParts, CollectiveKind::kAllReduce, 100'000);
    collectives_[3].type = DataType::kFloat32;
    EXPECT_EQ(large_length(), static_cast<std::size_t>(kernels::kMostParts));
}

TEST_F(BatchingTest, LargeBatchesLeaveOutWhatOtherKernelsDo) {
    add_many(2, CollectiveKind::kAllReduce, 100'000);
    for (Collective& each : collectives_) each.type = DataType::kInt32;
    EXPECT_EQ(large_length(), 1U) << "a sum that is not hot";
    for (Collective& each : collectives_) each.type = DataType::kFloat32;
    collectives_[1].op = collectives_[0].op = ReduceOp::kMax;
    EXPECT_EQ(large_length(), 1U);
    collectives_.clear();
    add_many(2, CollectiveKind::kAllGather, 100'000);
    EXPECT_EQ(large_length(), 2U);
    blocks_.back()[1].count = 99'999;
    EXPECT_EQ(large_length(), 1U) << "blocks of two lengths";
    blocks_.back()[0].count = blocks_.back()[1].count = 0;
    EXPECT_EQ(large_length(), 1U) << "nothing to do";
    blocks_.back()[0].count = blocks_.back()[1].count = std::size_t{64} << 20;
    EXPECT_EQ(large_length(), 1U) << "staggered";
}

TEST_F(BatchingTest, PartsOfLargeBatchesShareTheBlocks) {
    constexpr std::size_t kLong = 1'000'000;
    add(CollectiveKind::kReduceScatter, 1);
    add(CollectiveKind::kReduceScatter, kLong);
    add(CollectiveKind::kReduceScatter, kLong / 2);
    const auto batch = make_large_batch(collectives_, preferences_.most_blocks, 1, 2);
    ASSERT_TRUE(batch.is_ok()) << batch.status().to_string();
    const std::span parts(batch->parts, 3);
    EXPECT_EQ(batch->count, 3);
    EXPECT_EQ(parts[1].bytes, kLong * sizeof(float));
    EXPECT_EQ(parts[1].output, memory_.data());
    EXPECT_EQ(parts[0].first_block, 0);
    EXPECT_EQ(parts[0].blocks, 1);
    EXPECT_EQ(parts[1].first_block, 1);
    EXPECT_NEAR(parts[1].blocks, 2 * parts[2].blocks, 2);
    EXPECT_EQ(parts[2].first_block, 1 + parts[1].blocks);
    EXPECT_EQ(batch->plan.blocks, parts[2].first_block + parts[2].blocks);
    EXPECT_TRUE(kernels::check_plan(batch->plan, 0).is_ok());
}

TEST_F(BatchingTest, EveryPartOfALargeBatchHasABlock) {
    add_many(kernels::kMostParts, CollectiveKind::kAllReduce, 1);
    const auto batch = make_large_batch(collectives_, preferences_.most_blocks, 0, 2);
    ASSERT_TRUE(batch.is_ok()) << batch.status().to_string();
    for (int i = 0; i < kernels::kMostParts; ++i) EXPECT_EQ(batch->parts[i].first_block, i);
    EXPECT_EQ(batch->plan.blocks, kernels::kMostParts);
}

}  // namespace
}  // namespace pccl::device
