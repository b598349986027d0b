// SPDX-License-Identifier: Apache-2.0

// How device collectives are launched: every plan fits its message and the hardware's bounds.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "csrc/kernels/collective_plans.h"
#include "csrc/kernels/launch.h"

namespace pccl::kernels {
namespace {

using Planner = std::function<LaunchPlan(std::size_t, int)>;

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
            const LaunchPlan plan = GetParam().plan(bytes, ranks);
            const Status status = check_plan(plan, bytes);
            EXPECT_TRUE(status.is_ok())
                << bytes << " bytes, " << ranks << " ranks: " << status.to_string();
        }
}

TEST_P(PlanTest, EveryBlockOfAPlanByLLHasALine) {
    for (int ranks = 2; ranks <= abi::kMostDevices; ++ranks)
        for (const std::size_t bytes : sizes()) {
            const LaunchPlan plan = GetParam().plan(bytes, ranks);
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

}  // namespace
}  // namespace pccl::kernels
