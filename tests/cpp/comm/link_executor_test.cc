// SPDX-License-Identifier: Apache-2.0

// Link executors of all ranks in one thread: no rank waits for room that only a waiting rank could
// make.
#include "csrc/comm/links/link_executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "csrc/base/ids.h"
#include "tests/cpp/comm/link_groups.h"
#include "tests/cpp/comm/link_world.h"
#include "tests/cpp/schedule/catalogue.h"

namespace pccl::comm {
namespace {

/// A lane that is through with a window begins the next one, but not the one after that, which has
/// the same scratch.
TEST(LinkCapacityWorld, WindowsThatHaveScratchOverlapByOne) {
    for (const std::string_view name : {"pat", "recursive_halving"}) {
        const auto source = *schedule::built_in(name, CollectiveKind::kReduceScatter);
        LinkWorld world(16, source, 500'000, {.recorded = 1 << 12});
        ASSERT_EQ(world.run(), "") << name;
        std::map<std::uint32_t, std::pair<TimePoint, TimePoint>> windows;  // first begin, last end
        for (const TimedStep& step : world.recorded().steps) {
            const auto [window, is_new] = windows.try_emplace(step.window, step.begin, step.end);
            auto& [begin, end] = window->second;
            begin = std::min(begin, step.begin);
            end = std::max(end, step.end);
        }
        ASSERT_GT(windows.size(), 3U);
        int overlapping = 0;
        for (std::uint32_t window = 0; window + 2 < windows.size(); ++window) {
            overlapping += windows[window + 1].first < windows[window].second ? 1 : 0;
            EXPECT_GE(windows[window + 2].first, windows[window].second) << name << ", " << window;
        }
        if (name == "pat") {
            EXPECT_GT(overlapping, 0) << "one lane sends and one receives";
        }
    }
}

/// A look costs a system call, and the peer waits meanwhile.
TEST(LinkCapacityWorld, WhatOneLaneReceivedAnotherSendsBeforeTheFirstLooksForMore) {
    const auto source = *schedule::built_in("pat", CollectiveKind::kAllGather);
    LinkWorld world(16, source, 64);
    ASSERT_EQ(world.run(), "");
    for (Rank rank = 0; rank < 16; ++rank) {
        const std::string seen = world.seen(rank);
        // Each message but the last of log2 16 is passed on.
        for (std::size_t at = seen.find('r'); at < seen.rfind('s'); at = seen.find('r', at)) {
            at = seen.find_first_not_of('r', at);
            EXPECT_EQ(seen[at], 's') << seen << ", " << at;
        }
    }
}

TEST(LinkCapacityWorld, NobodyIsStuckByAnyAlgorithm) {
    for (const SourcePtr& source : schedule::testing::all_sources()) {
        EXPECT_EQ(LinkWorld(48, source, 3'000).run(), "") << schedule::testing::name_of(source);
    }
}

TEST(LinkCapacityWorld, NobodyIsStuckWhereMessagesHaveManyChunks) {
    constexpr int kRanks = 512;
    constexpr std::size_t kInLine = kCacheLine / sizeof(std::int64_t);
    for (const SourcePtr& source : sources()) {
        if (!gathers_chunks(source)) continue;
        // A cache line for each chunk.
        const auto chunks = static_cast<std::size_t>(source->granularity(kRanks));
        EXPECT_EQ(LinkWorld(kRanks, source, chunks * kInLine).run(), "")
            << schedule::testing::name_of(source);
    }
}

}  // namespace
}  // namespace pccl::comm
