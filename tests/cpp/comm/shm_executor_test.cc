// SPDX-License-Identifier: Apache-2.0

// Executors of three ranks sleep and wake where they should.
#include "csrc/comm/shm/shm_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    explicit Broadcast(ShmSegment& segment) : executor_(segment) {
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

}  // namespace
}  // namespace pccl::comm
