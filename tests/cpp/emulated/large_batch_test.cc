// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

#include "tests/cpp/emulated/cases.h"
#include "tests/cpp/emulated/emulated_ranks.h"

namespace pccl::comm {
namespace {

using kernels::LaunchPlan;
using kernels::Protocol;

/// A large one among small ones, aligned and not, in place and not; and what must go alone.
TEST_P(EmulatedTest, LargeOnesInOneLaunch) {
    if (!kRunsLongOnes) GTEST_SKIP() << kWhyNoLongOnes;
    constexpr std::size_t kLarge = 70'000;
    for (const CollectiveKind kind : {kAllReduce, kAllGather, kReduceScatter}) {
        std::vector<Case> cases;
        for (const std::size_t count : {std::size_t{1}, std::size_t{5003}, kLarge, std::size_t{77}})
            cases.push_back({.kind = kind,
                             .type = DataType::kBfloat16,
                             .count = count,
                             .op = ReduceOp::kAvg,
                             .offset = count % 4,
                             .in_place = count == kLarge});
        cases.push_back(cases.front());
        cases.back().type = DataType::kInt32;
        cases.back().op = ReduceOp::kSum;
        run_together(GetParam(), cases);
    }
}

/// A plan that is asked for holds for each of them: here it carries the first alone.
TEST(EmulatedTogetherTest, APlanIsNotPassedOver) {
    std::vector<Case> cases(2, {.count = 1, .plan = LaunchPlan{Protocol::kLL, 1, 32}});
    cases.back().count = 1000;
    fakes::run_device_ranks({.size = 2}, [&cases](fakes::DeviceRank& member) {
        const RunTogether run(cases, member);
        EXPECT_EQ(run.launch().code(), StatusCode::kInvalidArgument);
    });
}

}  // namespace
}  // namespace pccl::comm
