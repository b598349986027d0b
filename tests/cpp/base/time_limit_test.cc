// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/time_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace pccl {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(TimeLimitTest, SecondsAreDurations) {
    EXPECT_EQ(limit_of(0, "timeout").value(), Duration::zero());
    EXPECT_EQ(limit_of(-0.0, "timeout").value(), Duration::zero());
    EXPECT_EQ(limit_of(1.5, "timeout").value(), std::chrono::milliseconds(1500));
    EXPECT_EQ(limit_of(1e9, "timeout").value(), std::chrono::seconds(1'000'000'000));
}

TEST(TimeLimitTest, WhatIsInfiniteOrDoesNotFitIsNoLimit) {
    for (const double seconds :
         {std::numeric_limits<double>::infinity(), 1e300, 1e16, 9.3e9, 9223372036.854775807}) {
        const Duration limit = limit_of(seconds, "timeout").value();
        EXPECT_EQ(limit, kNoLimit) << seconds;
        EXPECT_TRUE(Deadline::after(limit).is_never()) << seconds;
        EXPECT_TRUE(Deadline::after(kNoLimit).is_never());
    }
}

TEST(TimeLimitTest, NegativeAndNoNumbersAreRefusedByName) {
    for (const double seconds : {-1.0, -1e-9, -1e300, -std::numeric_limits<double>::infinity(),
                                 std::nan(""), -std::nan("")}) {
        const Status refused = limit_of(seconds, "connect_timeout").status();
        EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << seconds;
        EXPECT_THAT(refused.message(), StartsWith("connect_timeout is "));
        EXPECT_THAT(refused.message(), HasSubstr("infinity for no limit"));
    }
}

}  // namespace
}  // namespace pccl
