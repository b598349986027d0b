// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <pccl/deadline.h>
#include "tests/cpp/base/hand_clock.h"

namespace pccl {
namespace {

TEST(DeadlineTest, PassesWhenItsTimeHasCome) {
    const HandClock clock;
    const Deadline deadline = Deadline::after(std::chrono::seconds(2), clock);
    EXPECT_FALSE(deadline.passed(clock));
    EXPECT_EQ(deadline.remaining(clock), std::chrono::seconds(2));
    clock.sleep_for(std::chrono::seconds(2));
    EXPECT_TRUE(deadline.passed(clock));
    EXPECT_EQ(deadline.remaining(clock), Duration::zero());
}

TEST(DeadlineTest, NegativeAndHugeTimeoutsMeanNever) {
    const HandClock clock;
    EXPECT_TRUE(Deadline::after(Duration(-1), clock).is_never());
    EXPECT_TRUE(Deadline::after(Duration::max(), clock).is_never());
    EXPECT_FALSE(Deadline::after(Duration::zero(), clock).is_never());
    EXPECT_TRUE(Deadline::after(Duration::zero(), clock).passed(clock));
}

TEST(DeadlineTest, NeverNeverPasses) {
    EXPECT_FALSE(Deadline::never().passed());
    EXPECT_EQ(Deadline::never().remaining(), Duration::max());
}

}  // namespace
}  // namespace pccl
