// SPDX-License-Identifier: Apache-2.0

// Some hundred runs of the fault explorer; build/dev/chaos does as many as one likes.
#include "tests/cpp/comm/chaos.h"

#include <gtest/gtest.h>

namespace pccl::comm::testing {
namespace {

TEST(ChaosTest, EveryRankHasTheResultOrAnError) {
    int disturbed = 0;
    constexpr int kRuns = 500;
    for (std::uint64_t seed = 1; seed <= kRuns; ++seed) {
        const ChaosRun run = explore(seed);
        EXPECT_EQ(run.fault, "") << run.what << "; again: build/dev/chaos --seed " << seed;
        disturbed += run.disturbed ? 1 : 0;
    }
    // Otherwise the plans were tame, and nothing was shown.
    EXPECT_GT(disturbed, kRuns / 20);
    EXPECT_LT(disturbed, kRuns / 2);
}

TEST(ChaosTest, ASeedGivesTheSameRun) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        const ChaosRun first = explore(seed);
        const ChaosRun second = explore(seed);
        EXPECT_EQ(first.what, second.what);
        EXPECT_EQ(first.disturbed, second.disturbed);
    }
}

}  // namespace
}  // namespace pccl::comm::testing
