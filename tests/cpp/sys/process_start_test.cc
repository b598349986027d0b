// SPDX-License-Identifier: Apache-2.0

// When this process began.
#include "csrc/sys/process_start.h"

#include <gtest/gtest.h>

#include <string>

#include "csrc/base/clock.h"

namespace pccl::sys {
namespace {

TEST(ProcessStartTest, ItIsBeforeNowAndNotLong) {
    const long long start = process_start_ms();
    EXPECT_LE(start, wall_clock_ms());
    EXPECT_GT(start, wall_clock_ms() - 3'600'000);
}

TEST(ProcessStartTest, TheFieldBehindAnyNameIsRead) {
    const std::string rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4200 20 21";
    for (const std::string name : {"(python)", "(a b)", "(x) R 7 (y)", "()"}) {
        const auto start = start_after_boot("81 " + name + rest, 100);
        ASSERT_TRUE(start.is_ok()) << name;
        EXPECT_EQ(*start, 42.0) << name;
    }
    EXPECT_FALSE(start_after_boot("", 100).is_ok());
    EXPECT_FALSE(start_after_boot("81 (python) S 1 2", 100).is_ok());
    EXPECT_FALSE(start_after_boot("81 (python)" + rest, 0).is_ok());
}

}  // namespace
}  // namespace pccl::sys
