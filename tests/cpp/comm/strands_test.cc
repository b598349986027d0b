// SPDX-License-Identifier: Apache-2.0

// Strands share the windows of a collective: results are those of one strand, whoever progresses
// them.
#include "csrc/comm/links/strands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>

#include "csrc/base/ids.h"
#include "tests/cpp/comm/link_groups.h"
#include "tests/cpp/comm/link_world.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {
namespace {

constexpr std::size_t kElements = 300'001;  // of int64: 2.4 MB in each block

TEST(Strands, EveryAlgorithmIsRightOnSeveral) {
    std::size_t most = 0;
    for (const SourcePtr& source : sources()) {
        for (const int ranks : {2, 3, 4}) {
            LinkWorld world(ranks, source, kElements, {.threads = 4});
            EXPECT_EQ(world.run(), "") << schedule::testing::name_of(source) << ", " << ranks;
            most = std::max(most, world.strands());
        }
    }
    EXPECT_EQ(most, 4U);
}

TEST(Strands, HelpersProgressThemConcurrently) {
    for (const CollectiveKind kind :
         {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        const auto source = *schedule::built_in("ring", kind);
        // The number of helpers changes from round to round at first.
        LinkWorld world(2, source, 4 * kElements, {.threads = 8, .helpers = 3, .rounds = 12});
        EXPECT_EQ(world.strands(), 8U);
        EXPECT_EQ(world.run(), "") << to_string(kind);
    }
}

TEST(Strands, ShortCallsHaveOne) {
    const auto source = *schedule::built_in("ring", CollectiveKind::kAllReduce);
    LinkWorld world(2, source, 4096, {.threads = 8, .helpers = 3});
    EXPECT_EQ(world.strands(), 1U);
    EXPECT_EQ(world.run(), "");
}

TEST(Strands, ATimelineShowsTheWindowsOfAll) {
    const auto source = *schedule::built_in("ring", CollectiveKind::kAllReduce);
    LinkWorld world(2, source, kElements, {.recorded = 1 << 12, .threads = 4, .helpers = 3});
    ASSERT_EQ(world.run(), "");
    ASSERT_EQ(world.strands(), 4U);
    const TimedSteps recorded = world.recorded();
    EXPECT_EQ(recorded.lost, 0U);
    std::set<std::uint32_t> windows;
    for (const TimedStep& step : recorded.steps) windows.insert(step.window);
    EXPECT_EQ(windows.size() % 4, 0U);
    EXPECT_EQ(*windows.rbegin(), windows.size() - 1) << "all windows, each once";
}

}  // namespace
}  // namespace pccl::comm
