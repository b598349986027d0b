// SPDX-License-Identifier: Apache-2.0

// Windows of a rank's counters: nothing is counted twice or lost, recent windows are short, and
// their number is bounded.
#include "csrc/runtime/flight/usage_history.h"

#include <gtest/gtest.h>

#include <chrono>

namespace pccl::runtime {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kStart{1'800'000'000};
static_assert(kStart % UsageHistory::kShortest == seconds(0));

UsageSnapshot calls(std::uint64_t count) {
    UsageSnapshot usage;
    usage.collectives[0].calls = count;
    usage.waits = {{.awaited = {1, Awaited::Act::kSend}, .waited = milliseconds(count)}};
    usage.paths = {{.peer = 1,
                    .interface = "eth0",
                    .counters = {.sent = 10 * count,
                                 .round_trip = milliseconds(count),
                                 .busy = milliseconds(2 * count)}}};
    return usage;
}

UsageHistory history_of(int windows, int apart = 1) {
    UsageHistory history;
    for (int i = 0; i < windows; ++i)
        history.add(kStart + i * apart * UsageHistory::kShortest, calls(1));
    return history;
}

TEST(UsageHistory, WindowsBeginAtMultiplesOfTheirLength) {
    EXPECT_EQ(UsageHistory::begin_of(milliseconds(4'999)), seconds(4));
    for (const int apart : {1, 2, 3, 7}) {
        const UsageHistory history = history_of(1'000, apart);
        seconds end{0};
        for (const UsageWindow& window : history.windows()) {
            EXPECT_EQ(window.begin % window.length, seconds(0));
            EXPECT_GE(window.begin, end) << "windows do not overlap";
            end = window.end();
        }
    }
}

TEST(UsageHistory, JoiningKeepsWhatWasCounted) {
    const UsageHistory history = history_of(10'000);
    UsageSnapshot sum;
    for (const UsageWindow& window : history.windows()) sum += window.usage;
    EXPECT_EQ(calls_of(sum), 10'000U);
    ASSERT_EQ(sum.paths.size(), 1U);
    EXPECT_EQ(sum.paths[0].counters.sent, 100'000U);
    EXPECT_EQ(sum.paths[0].counters.round_trip, milliseconds(1)) << "the shortest";
    ASSERT_EQ(sum.waits.size(), 1U);
    EXPECT_EQ(sum.waits[0].waited, milliseconds(10'000));
}

TEST(UsageHistory, RecentWindowsAreShort) {
    const UsageHistory history = history_of(100'000);
    const seconds end = history.windows().back().end();
    for (const UsageWindow& window : history.windows())
        EXPECT_LE(window.length, std::max(2 * UsageHistory::kShortest, (end - window.begin) / 4));
    EXPECT_LE(history.windows().size(), UsageHistory::kMost);
    EXPECT_LE(history.windows().front().begin, kStart) << "more than two days before";
}

TEST(UsageHistory, ASecondPartOfAWindowIsAddedToIt) {
    UsageHistory history = history_of(3);
    history.add(kStart, calls(5));  // the clock was set back
    ASSERT_EQ(history.windows().size(), 3U);
    EXPECT_EQ(calls_of(history.windows().back().usage), 6U);
}

TEST(UsageHistory, WaitsAndPathsOfAWindowAreBounded) {
    UsageSnapshot usage;
    for (Rank rank = 0; rank < 100; ++rank) {
        usage.waits.push_back(
            {.awaited = {rank, Awaited::Act::kSend}, .waited = milliseconds(rank)});
        usage.paths.push_back({.peer = rank, .counters = {.busy = milliseconds(rank)}});
    }
    UsageHistory history;
    history.add(kStart, usage);
    const UsageSnapshot& kept = history.windows().front().usage;
    EXPECT_EQ(kept.waits.size(), UsageHistory::kMostEntries);
    EXPECT_EQ(kept.paths.size(), UsageHistory::kMostEntries);
    EXPECT_EQ(kept.waits.front().awaited.rank, 99);
    EXPECT_EQ(kept.paths.front().peer, 99);
}

TEST(UsageSnapshot, ANewConnectionCountsFromItsStart) {
    UsageSnapshot before = calls(10);
    UsageSnapshot now = calls(3);
    now.collectives[0].calls = 12;
    now.waits[0].waited = milliseconds(11);
    const UsageSnapshot change = difference(now, before);
    EXPECT_EQ(calls_of(change), 2U);
    EXPECT_EQ(change.waits.at(0).waited, milliseconds(1));
    EXPECT_EQ(change.paths.at(0).counters.sent, 30U);
}

}  // namespace
}  // namespace pccl::runtime
