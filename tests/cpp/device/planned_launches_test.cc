// SPDX-License-Identifier: Apache-2.0

// Previews of launches keep to the preferences of the group.
#include "csrc/device/launch/planned_launches.h"

#include <gtest/gtest.h>

#include "csrc/kernels/launch.h"
#include "tests/cpp/device/launch_samples.h"

namespace pccl::device {
namespace {

using kernels::Protocol;

TEST(PreferencesTest, NoLaunchHasMoreBlocks) {
    for (const int most_blocks : {1, 3, 16, 100})
        for_each_launch({.most_blocks = most_blocks},
                        [&](CollectiveKind, const PlannedLaunch& each) {
                            EXPECT_LE(each.plan.blocks, most_blocks);
                            EXPECT_TRUE(kernels::check_plan(each.plan, each.bytes).is_ok());
                        });
}

TEST(PreferencesTest, SmallOnesGoByLLInFewBlocksToo) {
    const auto plan = planned_launches(kAllReduce, 20'000, 2, {.most_blocks = 16}).front().plan;
    EXPECT_EQ(plan.protocol, Protocol::kLL);
    EXPECT_EQ(plan.threads, 256);
}

}  // namespace
}  // namespace pccl::device
