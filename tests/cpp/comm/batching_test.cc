// Which small collectives share a launch, and how.

#include "csrc/comm/device/batching.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <vector>

namespace pccl::comm {
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
        return batch_length(collectives_, ranks);
    }

    std::vector<std::byte> memory_ = std::vector<std::byte>(2 << 20);
    std::vector<std::vector<Block>> blocks_;
    std::vector<Collective> collectives_;
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
    add_many(3, CollectiveKind::kAllReduce, kernels::kMostWordBytes / sizeof(float) / 2);
    EXPECT_EQ(length(2), 2U);
    EXPECT_EQ(length(8), 1U) << "7 times as much leaves a GPU";
}

TEST_F(BatchingTest, LargeOnesAndMessagesOfEachToEachGoAlone) {
    add_many(2, CollectiveKind::kAllReduce, kernels::kMostWordBytes / sizeof(float) + 1);
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
    const auto batch = make_batch(collectives_, 1, 2);
    ASSERT_TRUE(batch.is_ok()) << batch.status().to_string();
    EXPECT_EQ(batch->count, 3);
    EXPECT_TRUE(batch->reduces);
    EXPECT_EQ(batch->parts[1].first_word, 2U);
    EXPECT_EQ(batch->parts[2].first_word, 2U);
    EXPECT_EQ(batch->words, 6U);
    EXPECT_EQ(batch->parts[0].inputs[1], memory_.data() + 3 * sizeof(float));
    EXPECT_EQ(batch->parts[2].outputs[0], memory_.data());
    EXPECT_TRUE(kernels::check_plan(batch->plan, batch->words * abi::kLineBytes).is_ok());
}

TEST_F(BatchingTest, AWrongOneIsRefused) {
    add_many(2, CollectiveKind::kAllReduce, 5);
    collectives_[1].outputs = {};
    EXPECT_EQ(make_batch(collectives_, 0, 2).status().code(), StatusCode::kInvalidArgument);
    collectives_.clear();
    add(CollectiveKind::kAllReduce, 5).op = ReduceOp::kBand;
    EXPECT_EQ(make_batch(collectives_, 0, 2).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pccl::comm
