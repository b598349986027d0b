// SPDX-License-Identifier: Apache-2.0

// Which launches wait for which, on a driver that only writes down what it is asked.

#include "csrc/device/launch/launch_window.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/fakes/fake_cuda.h"

namespace pccl::device {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int kMultiprocessors = 132;

/// Some groups of one process on one GPU, and the streams they use: both are numbers.
class LaunchWindowTest : public ::testing::Test {
   protected:
    LaunchWindowTest() { driver_.fall_behind(); }

    void hold(int groups) {
        for (int i = 0; i < groups; ++i) {
            auto window = LaunchWindow::of(driver_, 0);
            ASSERT_TRUE(window.is_ok());
            groups_.push_back(*window);
        }
    }
    /// By group `which` in the stream of that number.
    void launch(int which, int blocks) { launch(which, which, blocks); }
    void launch(int which, int in, int blocks) {
        const auto permit =
            groups_.front()->begin({.group = &groups_.at(static_cast<std::size_t>(which)),
                                    .stream = stream(in),
                                    .blocks = blocks});
        EXPECT_TRUE(permit.is_ok());
    }
    static sys::cuda::Stream stream(int number) {
        return std::bit_cast<sys::cuda::Stream>(static_cast<std::uintptr_t>(number) + 1);
    }
    /// Stream `then` waits for the `event`th launch, counted from 1.
    static std::pair<sys::cuda::Stream, std::uintptr_t> wait(int then, std::uintptr_t event) {
        return {stream(then), event};
    }

    fakes::FakeCudaDriver driver_{std::make_shared<fakes::FakeGpus>()};
    std::vector<std::shared_ptr<LaunchWindow>> groups_;
};

TEST_F(LaunchWindowTest, TwoGroupsCostNothing) {
    hold(2);
    for (int time = 0; time < 3; ++time)
        for (int group = 0; group < 2; ++group) launch(group, 128);
    EXPECT_EQ(driver_.recorded(), 0U);
    EXPECT_THAT(driver_.awaited(), IsEmpty());
}

TEST_F(LaunchWindowTest, OfThreeLargeOnesTheLastWaitsForTheOthers) {
    hold(3);
    for (const int group : {0, 1, 2}) launch(group, 128);
    EXPECT_THAT(driver_.awaited(), ElementsAre(wait(2, 1), wait(2, 2)));
}

TEST_F(LaunchWindowTest, LaterOnesFollowWhatThatOneHasWaitedFor) {
    hold(3);
    for (const int group : {0, 1, 2, 0, 0}) launch(group, 128);
    EXPECT_THAT(driver_.awaited(), ElementsAre(wait(2, 1), wait(2, 2), wait(0, 1), wait(0, 2)));
}

TEST_F(LaunchWindowTest, ThoseThatFitRunAtOnce) {
    hold(4);
    for (const int group : {0, 1, 2}) launch(group, 64);
    EXPECT_THAT(driver_.awaited(), IsEmpty());
    launch(3, 8);
    EXPECT_THAT(driver_.awaited(), ElementsAre(wait(3, 1), wait(3, 2), wait(3, 3)));
}

TEST_F(LaunchWindowTest, OneGroupOrOneStreamIsInOrderAnyway) {
    hold(5);
    for (const int in : {0, 1, 2, 3, 4}) launch(0, in, 128);
    for (const int group : {0, 1, 2, 3, 4}) launch(group, 4, 128);
    EXPECT_THAT(driver_.awaited(), IsEmpty());
}

TEST_F(LaunchWindowTest, WhatIsDoneHoldsNobodyUp) {
    hold(3);
    for (const int group : {0, 1}) launch(group, 128);
    driver_.catch_up();
    for (const int group : {2, 0}) launch(group, 128);
    EXPECT_THAT(driver_.awaited(), IsEmpty());
}

TEST_F(LaunchWindowTest, WhatIsCapturedIsNotCounted) {
    hold(3);
    driver_.capture(true);
    for (const int group : {0, 1, 2}) launch(group, 128);
    EXPECT_EQ(driver_.recorded(), 0U);
}

TEST_F(LaunchWindowTest, EveryEventIsGivenBack) {
    hold(3);
    for (const int group : {0, 1, 2, 0, 0, 2}) launch(group, 128);
    EXPECT_EQ(driver_.recorded(), 6U);
    EXPECT_LT(driver_.destroyed(), 6U);
    groups_.clear();
    EXPECT_EQ(driver_.destroyed(), 6U);
}

/// Whether each launch has to come after each other one: by its group, its stream or what it waits
/// for, directly or not.
class Order {
   public:
    void add(std::vector<std::size_t> earlier) {
        std::vector<bool> before(before_.size() + 1, false);
        for (const std::size_t each : earlier) {
            before[each] = true;
            for (std::size_t i = 0; i < before_[each].size(); ++i)
                if (before_[each][i]) before[i] = true;
        }
        before_.push_back(std::move(before));
    }
    [[nodiscard]] bool may_meet(std::size_t later, std::size_t earlier) const {
        return !before_[later][earlier];
    }

   private:
    std::vector<std::vector<bool>> before_;
};

TEST_F(LaunchWindowTest, AllButTheSmallestOfAnyThreeThatMayMeetFit) {
    constexpr int kGroups = 5;
    hold(kGroups);
    std::mt19937 random(7);
    std::vector<int> blocks;
    Order order;
    std::vector<std::vector<std::size_t>> of_stream(kGroups);
    std::size_t seen = 0;
    std::size_t done = 0;
    int met = 0;
    for (std::size_t now = 0; now < 2000; ++now) {
        if (random() % 10 == 0) {
            driver_.catch_up();
            done = now;
        }
        const auto group = static_cast<int>(random() % kGroups);
        blocks.push_back(1 + static_cast<int>(random() % 128));
        launch(group, blocks.back());
        std::vector<std::size_t> earlier = of_stream[static_cast<std::size_t>(group)];
        for (; seen < driver_.awaited().size(); ++seen)
            earlier.push_back(driver_.awaited()[seen].second - 1);
        order.add(std::move(earlier));
        of_stream[static_cast<std::size_t>(group)].push_back(now);
        for (std::size_t a = done; a < now; ++a)
            for (std::size_t b = done; b < a; ++b)
                if (order.may_meet(now, a) && order.may_meet(now, b) && order.may_meet(a, b)) {
                    ++met;
                    const auto [least, most] = std::minmax({blocks[now], blocks[a], blocks[b]});
                    const int all = blocks[now] + blocks[a] + blocks[b];
                    EXPECT_LT(all - least, kMultiprocessors) << now << ' ' << a << ' ' << b;
                }
    }
    EXPECT_GT(met, 0) << "nothing was tested";
}

}  // namespace
}  // namespace pccl::device
