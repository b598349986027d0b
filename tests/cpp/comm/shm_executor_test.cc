// SPDX-License-Identifier: Apache-2.0

// Executors of three ranks sleep and wake where they should.
#include "csrc/comm/shm/shm_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/collective/fingerprint.h"
#include "csrc/comm/shm/shm_segment.h"
#include "tests/cpp/comm/segments.h"

namespace pccl::comm {
namespace {

class ShmSegmentOfThreeTest : public ShmSegmentTest {
   protected:
    void SetUp() override { meet(3); }
};

TEST_F(ShmSegmentOfThreeTest, ARankThatWaitsTwiceRecordsItTwice) {
    for (auto& segment : segments_) ASSERT_FALSE(segment->open().value());
    ASSERT_EQ(segments_[0]->awaited(), 1) << "to come";
    const std::uint64_t before = segments_[0]->waits();
    ASSERT_FALSE(segments_[0]->open().value());
    ASSERT_EQ(segments_[0]->awaited(), 1) << "to try whether it can read the others";
    EXPECT_GT(segments_[0]->waits(), before);
}

/// A rank's part in a broadcast from rank 0 that takes four rounds.
class Broadcast {
   public:
    explicit Broadcast(ShmSegment& segment) : executor_(segment, 0) {
        if (segment.self() == 0) broadcast_.inputs = broadcast_.outputs;
        executor_.start({.window = kWindow}, header_of(signature_of(broadcast_)), broadcast_);
    }

    /// Whether it has moved.
    bool progress() {
        bool moved = false;
        EXPECT_TRUE(executor_.progress(moved).is_ok());
        return moved;
    }

   private:
    static constexpr std::size_t kWindow = 64;
    std::vector<std::byte> data_ = std::vector<std::byte>(4 * kWindow);
    const Block block_{data_.data(), data_.size()};
    Collective broadcast_{.kind = schedule::CollectiveKind::kBroadcast,
                          .type = DataType::kUint8,
                          .outputs = {&block_, 1}};
    ShmExecutor executor_;
};

TEST_F(ShmSegmentOfThreeTest, WhoWaitsForAnotherThanBeforeLooksOnceMoreBeforeItSleeps) {
    open_all();
    std::vector<std::unique_ptr<Broadcast>> ranks;
    for (auto& segment : segments_) ranks.push_back(std::make_unique<Broadcast>(*segment));
    while (ranks[0]->progress()) continue;
    ASSERT_EQ(segments_[0]->awaited(), 1);
    while (ranks[1]->progress()) continue;
    // Rank 2 may just have looked who waits for it, and rung nobody.
    EXPECT_TRUE(ranks[0]->progress());
    ASSERT_EQ(segments_[0]->awaited(), 2);
    EXPECT_FALSE(ranks[0]->progress()) << "nothing has changed: time to sleep";
}

/// A rank's part in all_reduces of its own values, directly from memory to memory.
class DirectSum {
   public:
    DirectSum(ShmSegment& segment, std::size_t count)
        : values_(count), executor_(segment, 3), self_(segment.self()) {}

    /// Adds values that differ by rank, place and round.
    void start(int round) {
        for (std::size_t i = 0; i < values_.size(); ++i)
            values_[i] = static_cast<std::int32_t>(i) * (self_ + 1) + round;
        executor_.start({.scatters_first = true,
                         .is_direct = true,
                         .window = values_.size(),
                         .own_cache = 64 * kKiB},
                        header_of(signature_of(sum_)), sum_);
    }
    bool is_done() {
        bool moved = false;
        const auto done = executor_.progress(moved);
        EXPECT_TRUE(done.is_ok()) << done.status().to_string();
        return !done.is_ok() || *done;
    }
    [[nodiscard]] const std::vector<std::int32_t>& values() const { return values_; }

   private:
    std::vector<std::int32_t> values_;
    const Block block_{reinterpret_cast<std::byte*>(values_.data()), values_.size()};
    Collective sum_{.kind = schedule::CollectiveKind::kAllReduce,
                    .type = DataType::kInt32,
                    .inputs = {&block_, 1},
                    .outputs = {&block_, 1}};
    ShmExecutor executor_;
    Rank self_;
};

TEST_F(ShmSegmentTest, HelpersShareLongReductionsWithEqualResults) {
    open_all();
    constexpr std::size_t kCount = 3 * kMiB / sizeof(std::int32_t) + 7;
    DirectSum first(*segments_[0], kCount);
    DirectSum second(*segments_[1], kCount);
    // The number of helpers changes from round to round at first.
    for (int round = 0; round < 12; ++round) {
        first.start(round);
        second.start(round);
        for (bool is_over = false; !is_over;) {
            const bool one = first.is_done();
            is_over = second.is_done() && one;
        }
        std::vector<std::int32_t> expected(kCount);
        for (std::size_t i = 0; i < kCount; ++i)
            expected[i] = 3 * static_cast<std::int32_t>(i) + 2 * round;
        ASSERT_EQ(first.values(), expected);
        ASSERT_EQ(second.values(), expected);
    }
}

}  // namespace
}  // namespace pccl::comm
