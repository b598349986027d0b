// SPDX-License-Identifier: Apache-2.0
#include "csrc/kernels/launch.h"

#include <gtest/gtest.h>

#include <utility>

namespace pccl::kernels {
namespace {

TEST(CheckPlanTest, RefusesWhatWouldNotFit) {
    const LaunchPlan words{.protocol = Protocol::kLL, .blocks = 2, .threads = 64};
    EXPECT_TRUE(check_plan(words, 1024).is_ok());
    EXPECT_EQ(check_plan(words, 1025).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(check_plan({.protocol = Protocol::kLL, .blocks = 65, .threads = 64}, 1).code(),
              StatusCode::kInvalidArgument);
    EXPECT_EQ(check_plan({.blocks = 0}, 1).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(check_plan({.blocks = 129}, 1).code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(check_plan({.blocks = 1, .threads = 33}, 1).code(), StatusCode::kInvalidArgument);
}

TEST(CheckReductionTest, RefusesWhatNoKernelDoes) {
    EXPECT_TRUE(check_reduction(DataType::kBfloat16, ReduceOp::kAvg).is_ok());
    EXPECT_TRUE(check_reduction(DataType::kComplex64, ReduceOp::kSum).is_ok());
    EXPECT_TRUE(check_reduction(DataType::kInt8, ReduceOp::kBxor).is_ok());
    for (const auto& [type, op] : {std::pair(DataType::kBytes, ReduceOp::kSum),
                                   std::pair(DataType::kFloat32, ReduceOp::kBand),
                                   std::pair(DataType::kBool, ReduceOp::kAvg),
                                   std::pair(DataType::kComplex128, ReduceOp::kMax)})
        EXPECT_EQ(check_reduction(type, op).code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace pccl::kernels
