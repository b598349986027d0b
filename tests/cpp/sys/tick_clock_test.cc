// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/tick_clock.h"

#include <gtest/gtest.h>

namespace pccl::sys {
namespace {

TEST(TickClock, ReturnsTheTimeOfTheSystemClock) {
    TickClock::find_rate();
    TickClock clock;
    clock.refresh();
    const Duration near = std::chrono::milliseconds(1);
    for (int i = 0; i < 20; ++i) {
        const TimePoint before = system_clock().now();
        const TimePoint now = clock.now();
        const TimePoint after = system_clock().now();
        EXPECT_GE(now, before - near);
        EXPECT_LE(now, after + near);
        system_clock().sleep_for(std::chrono::milliseconds(1));
    }
}

TEST(TickClock, NeverGoesBackBetweenTwoReads) {
    TickClock clock;
    clock.refresh();
    TimePoint last = clock.now();
    for (int i = 0; i < 10'000; ++i) {
        const TimePoint now = clock.now();
        ASSERT_GE(now, last);
        last = now;
    }
}

}  // namespace
}  // namespace pccl::sys
