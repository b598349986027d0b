// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/threads/now_and_then.h"

#include <gtest/gtest.h>

#include <chrono>

namespace pccl {
namespace {

using std::chrono::milliseconds;

class HandClock final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override {
        ++looks;
        return at;
    }
    void sleep_for(Duration) const override {}

    TimePoint at{std::chrono::hours(1)};
    mutable int looks = 0;
};

/// How many of so many rounds are due, of which each takes so long.
int due_in(NowAndThen& look, HandClock& clock, int rounds, Duration each) {
    int due = 0;
    for (int i = 0; i < rounds; ++i) {
        due += look.is_due() ? 1 : 0;
        clock.at += each;
    }
    return due;
}

TEST(NowAndThenTest, IsDueWhileSomethingAlwaysMoves) {
    HandClock clock;
    NowAndThen look(milliseconds(50), clock);
    EXPECT_EQ(due_in(look, clock, 1600, milliseconds(1)), 1600 / 64 - 1);
}

TEST(NowAndThenTest, RoundsThatTakeLongAreLookedAtEach) {
    HandClock clock;
    NowAndThen look(milliseconds(50), clock);
    EXPECT_EQ(due_in(look, clock, 160, milliseconds(100)), 160 / NowAndThen::kRounds - 1);
}

TEST(NowAndThenTest, ClockIsLookedAtNowAndThen) {
    HandClock clock;
    NowAndThen look(milliseconds(50), clock);
    EXPECT_EQ(due_in(look, clock, 1600, std::chrono::nanoseconds(10)), 0);
    EXPECT_EQ(clock.looks, 1600 / NowAndThen::kRounds);
}

}  // namespace
}  // namespace pccl
