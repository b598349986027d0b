// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/launch.h"

namespace pccl::kernels {
namespace {

TEST(AllReduceTest, OnlyTheLargestAmongSeveralGoInTwo) {
    EXPECT_TRUE(is_faster_in_two(std::size_t{512} << 20, 4));
    EXPECT_FALSE(is_faster_in_two(std::size_t{256} << 20, 4));
    EXPECT_FALSE(is_faster_in_two(std::size_t{1} << 30, 2));
}

}  // namespace
}  // namespace pccl::kernels
