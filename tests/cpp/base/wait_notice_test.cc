// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/log/wait_notice.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/cpp/base/hand_clock.h"

namespace pccl {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

class WaitNoticeTest : public testing::Test {
   protected:
    /// How often it speaks in a wait of that length, of which it hears every second.
    int notices_in(Duration wait) {
        int reported = 0;
        for (Duration waited{0}; waited < wait; waited += seconds(1)) {
            clock_.sleep_for(seconds(1));
            reported += notice_.is_due(waited + seconds(1)) ? 1 : 0;
        }
        return reported;
    }

    HandClock clock_;
    WaitNotice notice_{clock_};
};

TEST_F(WaitNoticeTest, WarnsAfterFiveSeconds) {
    EXPECT_EQ(notices_in(seconds(4)), 0);
    EXPECT_EQ(notices_in(seconds(5)), 1);
}

TEST_F(WaitNoticeTest, WarnsOfALongWaitEverMoreRarely) {
    EXPECT_EQ(notices_in(seconds(60)), 1);
    EXPECT_EQ(notices_in(minutes(60)), 2);  // a minute and eleven minutes after the first
    EXPECT_EQ(notices_in(std::chrono::hours(24)), 24);
}

TEST_F(WaitNoticeTest, ManyWaitsTogetherAreWarnedOfAsRarely) {
    int reported = 0;
    for (int step = 0; step < 600; ++step) reported += notices_in(seconds(6));
    EXPECT_EQ(reported, 3);  // in an hour
}

TEST_F(WaitNoticeTest, ShortWaitsAreNotWarnedOf) {
    int reported = 0;
    for (int step = 0; step < 600; ++step) reported += notices_in(seconds(4));
    EXPECT_EQ(reported, 0);
}

TEST(WaitNoticeThreadsTest, OneOfSeveralThreadsWarns) {
    WaitNotice notice;
    std::atomic<int> reported{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i)
        threads.emplace_back([&] { reported += notice.is_due(seconds(6)) ? 1 : 0; });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(reported, 1);
}

TEST(InSecondsTest, AreWhole) { EXPECT_EQ(in_seconds(std::chrono::milliseconds(5400)), "5 s"); }

}  // namespace
}  // namespace pccl
