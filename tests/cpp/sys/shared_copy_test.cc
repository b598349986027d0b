// SPDX-License-Identifier: Apache-2.0

// Copies that choose between the caches and memory: by what a clock says, and always all bytes.
#include "csrc/sys/cpu/shared_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <deque>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/cpu/streaming.h"
#include "tests/cpp/sys/counted.h"

namespace pccl::sys {
namespace {

constexpr std::size_t kBytes = 64 * kKiB;

/// Says of each trial what it is told to: how long the plain part takes, and how long the other.
class ScriptedClock final : public Clock {
   public:
    void take(Duration plain, Duration streamed) {
        for (const Duration step : {Duration{0}, streamed, Duration{0}, plain})
            steps_.push_back(step);
    }
    [[nodiscard]] bool is_over() const { return steps_.empty(); }
    [[nodiscard]] TimePoint now() const override {
        if (!steps_.empty()) {
            now_ += steps_.front();
            steps_.pop_front();
        }
        return now_;
    }
    void sleep_for(Duration) const override {}

   private:
    mutable std::deque<Duration> steps_;
    mutable TimePoint now_{};
};

class Copies : public ::testing::Test {
   protected:
    void copy(int times) {
        for (int i = 0; i < times; ++i) copies_.copy(target_.data(), source_.data(), kBytes);
    }

    ScriptedClock clock_;
    SharedCopy copies_{clock_};
    std::vector<std::byte> source_ = counted(kBytes);
    std::vector<std::byte> target_ = std::vector<std::byte>(kBytes);
};

TEST(SharedCopy, CopiesExactlyItsBytesInTrialsAndBetweenThem) {
    const std::vector<std::byte> source = counted(40000);
    SharedCopy copies;
    for (int round = 0; round < 2 * SharedCopy::kCopiesPerTrial; ++round)
        for (const std::size_t bytes : {0, 1, 4095, 4096, 4097, 8191, 39000}) {
            std::vector<std::byte> target(bytes + 2, std::byte{0xEE});
            copies.copy(target.data() + 1, source.data() + 3, bytes);
            EXPECT_TRUE(std::equal(target.begin() + 1, target.end() - 1, source.begin() + 3));
            EXPECT_EQ(target.front(), std::byte{0xEE});
            EXPECT_EQ(target.back(), std::byte{0xEE});
        }
}

TEST_F(Copies, FollowWhatIsFasterNow) {
    if (!kStreamsPastCaches) GTEST_SKIP() << "no streaming stores on this processor";
    EXPECT_FALSE(copies_.streams(kBytes));
    clock_.take(std::chrono::microseconds(4), std::chrono::nanoseconds(300));
    copy(1);
    EXPECT_TRUE(copies_.streams(kBytes)) << "taking lines from far caches takes ten times as long";
    EXPECT_EQ(target_, source_);
    clock_.take(std::chrono::nanoseconds(250), std::chrono::nanoseconds(300));
    copy(SharedCopy::kCopiesPerTrial - 1);
    EXPECT_TRUE(copies_.streams(kBytes)) << "until the next trial";
    copy(1);
    EXPECT_FALSE(copies_.streams(kBytes)) << "the cores have moved near each other";
    EXPECT_TRUE(clock_.is_over());
}

TEST_F(Copies, TryPlainWritingInEarnestWhereItIsNotMuchSlower) {
    if (!kStreamsPastCaches) GTEST_SKIP() << "no streaming stores on this processor";
    clock_.take(std::chrono::microseconds(4), std::chrono::nanoseconds(300));
    copy(1);
    for (int trial = 0; trial < 2; ++trial) {
        EXPECT_TRUE(copies_.streams(kBytes));
        clock_.take(std::chrono::nanoseconds(1500), std::chrono::nanoseconds(600));
        copy(SharedCopy::kCopiesPerTrial);
    }
    EXPECT_FALSE(copies_.streams(kBytes)) << "lines that lie in memory take 1500 ns to be written";
    clock_.take(std::chrono::nanoseconds(600), std::chrono::nanoseconds(600));
    copy(SharedCopy::kCopiesPerTrial);
    EXPECT_FALSE(copies_.streams(kBytes)) << "and 600 where they were written so before";
    EXPECT_TRUE(clock_.is_over());
}

TEST_F(Copies, SeldomTryInVain) {
    if (!kStreamsPastCaches) GTEST_SKIP() << "no streaming stores on this processor";
    constexpr int kTrials = 4 * SharedCopy::kTrialsPerAttempt;
    int attempts = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
        clock_.take(std::chrono::nanoseconds(1500), std::chrono::nanoseconds(600));
        copy(trial == 0 ? 1 : SharedCopy::kCopiesPerTrial);
        if (!copies_.streams(kBytes)) ++attempts;
    }
    // Each waits twice as long as the one before it, up to kTrialsPerAttempt.
    EXPECT_GE(attempts, 6);
    EXPECT_LE(attempts, 10);
}

TEST_F(Copies, DoNotTryWhereItTakesVeryMuchLonger) {
    if (!kStreamsPastCaches) GTEST_SKIP() << "no streaming stores on this processor";
    for (int trial = 0; trial < 100; ++trial) {
        clock_.take(std::chrono::microseconds(4), std::chrono::nanoseconds(600));
        copy(trial == 0 ? 1 : SharedCopy::kCopiesPerTrial);
        EXPECT_TRUE(copies_.streams(kBytes));
    }
}

TEST_F(Copies, OfOneSizeImplyNothingForOthers) {
    if (!kStreamsPastCaches) GTEST_SKIP() << "no streaming stores on this processor";
    clock_.take(std::chrono::microseconds(4), std::chrono::nanoseconds(300));
    copy(1);
    EXPECT_TRUE(copies_.streams(kBytes));
    EXPECT_FALSE(copies_.streams(kBytes / 2));
    EXPECT_FALSE(copies_.streams(SharedCopy::kFewestBytes - 1));
}

TEST_F(Copies, StayInTheCachesWhereReadersWouldWaitForMemory) {
    // Streaming spares 100 ns of 16 KiB; reading them from memory takes some 600 ns more.
    clock_.take(std::chrono::nanoseconds(400), std::chrono::nanoseconds(300));
    copy(1);
    EXPECT_FALSE(copies_.streams(kBytes));
}

}  // namespace
}  // namespace pccl::sys
