// SPDX-License-Identifier: Apache-2.0

// How device collectives are launched: every plan fits its message and the hardware's bounds.

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/launch.h"

namespace pccl::kernels {
namespace {

using Planner = std::function<Plan(std::size_t, int)>;

std::vector<std::size_t> sizes() {
    std::vector<std::size_t> found;
    for (std::size_t bytes = 1; bytes <= std::size_t{1} << 32; bytes *= 2)
        for (const std::size_t each : {bytes - 1, bytes, bytes + 1})
            if (each > 0) found.push_back(each);
    return found;
}

struct Kind {
    const char* name;
    Planner plan;
};

class PlanTest : public testing::TestWithParam<Kind> {};
INSTANTIATE_TEST_SUITE_P(Kinds, PlanTest,
                         testing::Values(Kind{"all_reduce", plan_all_reduce},
                                         Kind{"reduce", plan_reduce},
                                         Kind{"all_gather", plan_all_gather},
                                         Kind{"reduce_scatter", plan_reduce_scatter},
                                         Kind{"all_to_all", plan_all_to_all},
                                         Kind{"broadcast", plan_broadcast}),
                         [](const auto& kind) { return std::string(kind.param.name); });

TEST_P(PlanTest, EveryPlanCarriesItsMessage) {
    for (int ranks = 2; ranks <= abi::kMostDevices; ++ranks)
        for (const std::size_t bytes : sizes()) {
            const Plan plan = GetParam().plan(bytes, ranks);
            const Status status = check_plan(plan, bytes);
            EXPECT_TRUE(status.is_ok())
                << bytes << " bytes, " << ranks << " ranks: " << status.to_string();
        }
}

TEST_P(PlanTest, EveryBlockOfAPlanByLLHasALine) {
    for (int ranks = 2; ranks <= abi::kMostDevices; ++ranks)
        for (const std::size_t bytes : sizes()) {
            const Plan plan = GetParam().plan(bytes, ranks);
            if (plan.protocol != Protocol::kLL) continue;
            const std::size_t words = (bytes + 7) / 8;
            EXPECT_GT(words, static_cast<std::size_t>((plan.blocks - 1) * plan.threads)) << bytes;
        }
}

TEST_P(PlanTest, SmallMessagesGoByLLAndLargeOnesDoNot) {
    EXPECT_EQ(GetParam().plan(1024, 8).protocol, Protocol::kLL);
    EXPECT_NE(GetParam().plan(std::size_t{1} << 28, 8).protocol, Protocol::kLL);
}

TEST(CopyEnginesTest, MoveWhatIsLargeAmongSeveral) {
    constexpr std::size_t kLarge = std::size_t{256} << 20;
    for (const auto plan : {plan_all_gather, plan_all_to_all}) {
        EXPECT_EQ(plan(kLarge, 4).protocol, Protocol::kCopyEngine);
        EXPECT_NE(plan(kLarge, 2).protocol, Protocol::kCopyEngine);
        EXPECT_NE(plan(kLarge / 16, 4).protocol, Protocol::kCopyEngine);
    }
}

TEST(AllReduceTest, OnlyTheLargestAmongSeveralGoInTwo) {
    EXPECT_TRUE(is_faster_in_two(std::size_t{512} << 20, 4));
    EXPECT_FALSE(is_faster_in_two(std::size_t{256} << 20, 4));
    EXPECT_FALSE(is_faster_in_two(std::size_t{1} << 30, 2));
}

TEST(CheckPlanTest, RefusesWhatWouldNotFit) {
    const Plan words{.protocol = Protocol::kLL, .blocks = 2, .threads = 64};
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
