// SPDX-License-Identifier: Apache-2.0

// What a rank's counters state about calls that follow each other, overlap, or have no prediction.
#include "csrc/runtime/flight/group_usage.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <vector>

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

TEST(GroupUsage, MessagesAreCountedApart) {
    using Direction = GroupUsage::Direction;
    GroupUsage usage;
    usage.add_message(
        {.direction = Direction::kSent, .bytes = 100, .begun = at(0), .ended = at(4)});
    usage.add_message(
        {.direction = Direction::kReceived, .bytes = 30, .begun = at(2), .ended = at(5)});
    usage.add_message(
        {.direction = Direction::kSent, .bytes = 1, .begun = at(10), .ended = at(11)});
    usage.add_wait({{1, Awaited::Act::kSend}}, milliseconds(3), GroupUsage::Waiter::kMessage);
    const UsageSnapshot now = usage.snapshot(8);
    EXPECT_EQ(now.messages.sent.calls, 2U);
    EXPECT_EQ(now.messages.sent.bytes, 101U);
    EXPECT_EQ(now.messages.received.calls, 1U);
    EXPECT_EQ(now.messages.received.bytes, 30U);
    EXPECT_EQ(now.messages.under_way, milliseconds(6)) << "the time that passed";
    ASSERT_EQ(now.messages.waits.size(), 1U);
    EXPECT_EQ(now.messages.waits[0].waited, milliseconds(3));
    EXPECT_TRUE(now.waits.empty());
    EXPECT_EQ(calls_of(now), 0U);
    EXPECT_EQ(operations_of(now), 3U);
}

TEST(GroupUsage, TheHistoryContainsAllThatWasCounted) {
    std::uint64_t sent = 0;
    GroupUsage usage([&] {
        return std::vector<PeerPath>{{.peer = 1, .interface = "eth0", .counters = {.sent = sent}}};
    });
    EXPECT_TRUE(usage.history({}).empty());
    for (int call = 0; call < 100; ++call) {
        sent += 8;
        usage.add_wait({{1, Awaited::Act::kSend}}, milliseconds(1));
        // Each call is longer than a window.
        usage.add_call({.bytes = 8, .begun = at(5'000 * call), .ended = at(5'000 * call + 4'000)});
    }
    UsageSnapshot sum;
    for (const UsageWindow& window : usage.history({})) sum += window.usage;
    EXPECT_EQ(calls_of(sum), 100U);
    EXPECT_EQ(sum.collectives[0].taken, milliseconds(400'000));
    EXPECT_EQ(sum.waits.at(0).waited, milliseconds(100));
    EXPECT_EQ(sum.paths.at(0).counters.sent, 800U);
    const auto last = usage.history({}).back();
    EXPECT_TRUE(usage.history(last.end()).empty());
}

}  // namespace
}  // namespace pccl::runtime
