// SPDX-License-Identifier: Apache-2.0

// What a rank's counters state about calls that follow each other, overlap, or have no prediction.
#include "csrc/runtime/flight/group_usage.h"

#include <gtest/gtest.h>

#include <chrono>

namespace pccl::runtime {
namespace {

using std::chrono::milliseconds;

TimePoint at(int ms) { return TimePoint{} + milliseconds(1'000 + ms); }

const CollectiveCounts& of(const UsageSnapshot& usage, UsedPath path) {
    return usage.collectives[static_cast<std::size_t>(path)];
}

TEST(GroupUsage, CountsCallsAndTheTimeBetweenThem) {
    GroupUsage usage;
    usage.add_call({.bytes = 100, .begun = at(0), .ended = at(4), .predicted = milliseconds(3)});
    usage.add_call({.bytes = 50, .begun = at(10), .ended = at(11), .predicted = milliseconds(2)});
    const UsageSnapshot now = usage.snapshot(8);
    const CollectiveCounts& memory = of(now, UsedPath::kSharedMemory);
    EXPECT_EQ(memory.calls, 2U);
    EXPECT_EQ(memory.bytes, 150U);
    EXPECT_EQ(memory.taken, milliseconds(5));
    EXPECT_EQ(memory.predicted, milliseconds(5));
    EXPECT_EQ(now.between, milliseconds(6));
    EXPECT_EQ(of(now, UsedPath::kLinks).calls, 0U);
}

TEST(GroupUsage, QueuedCallsCountFromTheEndOfThoseBefore) {
    GroupUsage usage;
    usage.add_call({.path = UsedPath::kLinks, .begun = at(0), .ended = at(4)});
    usage.add_call({.path = UsedPath::kLinks, .begun = at(1), .ended = at(6)});
    const UsageSnapshot now = usage.snapshot(8);
    EXPECT_EQ(of(now, UsedPath::kLinks).taken, milliseconds(6)) << "the time that passed";
    EXPECT_EQ(of(now, UsedPath::kLinks).predicted, milliseconds(6)) << "as taken";
    EXPECT_EQ(now.between, Duration::zero());
}

TEST(GroupUsage, WaitsAreThoseOfEachAwaitedRank) {
    using Act = Awaited::Act;
    GroupUsage usage;
    usage.add_wait({{1, Act::kSend}}, milliseconds(1));
    usage.add_wait({{2, Act::kSend}, {3, Act::kReceive}}, milliseconds(10));
    usage.add_wait({{1, Act::kSend}}, milliseconds(1));
    usage.add_wait({}, milliseconds(100));
    const UsageSnapshot now = usage.snapshot(8);
    ASSERT_EQ(now.waits.size(), 3U);
    EXPECT_EQ(now.waits.back().awaited, (Awaited{1, Act::kSend}));
    EXPECT_EQ(now.waits.back().waited, milliseconds(2));
    EXPECT_EQ(now.waits.front().waited, milliseconds(5));
    EXPECT_EQ(usage.snapshot(1).waits.size(), 1U);
}

}  // namespace
}  // namespace pccl::runtime
