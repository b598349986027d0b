// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/shift.h"

#include <gtest/gtest.h>

namespace pccl::sys {
namespace {

constexpr Duration kLong = std::chrono::hours(1);

TEST(ShiftTest, NumbersItsThreads) {
    Shift shift(kLong);
    EXPECT_EQ(shift.join(), 0U);
    EXPECT_EQ(shift.join(), 1U);
    EXPECT_EQ(shift.workers(), 2U);
}

TEST(ShiftTest, LastsWhileSomethingMoves) {
    Shift shift(kLong);
    EXPECT_FALSE(shift.has_moved());
    for (int round = 0; round < 1000; ++round) EXPECT_TRUE(shift.goes_on(true, false));
    EXPECT_TRUE(shift.has_moved());
}

TEST(ShiftTest, EndsForAThreadThatLeavesNothing) {
    Shift shift(kLong);
    EXPECT_FALSE(shift.goes_on(false, false));
    EXPECT_FALSE(shift.has_moved());
}

TEST(ShiftTest, EndsWhereNothingHasMovedForAWhile) {
    Shift shift(kLong);
    while (shift.goes_on(false, true)) {
    }
    EXPECT_FALSE(shift.has_moved());
}

TEST(ShiftTest, EndsAfterItsTimeEvenWhileDataMoves) {
    Shift shift(Duration::zero());
    while (shift.goes_on(true, true)) {
    }
    EXPECT_TRUE(shift.has_moved());
}

TEST(ShiftTest, EndsForAllOnceItIsEnded) {
    Shift shift(kLong);
    shift.end();
    EXPECT_FALSE(shift.goes_on(true, true));
}

}  // namespace
}  // namespace pccl::sys
