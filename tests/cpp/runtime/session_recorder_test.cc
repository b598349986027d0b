// SPDX-License-Identifier: Apache-2.0

// What sessions did, as it is read back.
#include "csrc/runtime/flight/session_recorder.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/cpp/runtime/recorded_sessions.h"

namespace pccl::runtime {
namespace {

TEST_F(SessionRecorderTest, KeepsTheLastTransfersAndEndsNoYoungerOne) {
    const std::uint64_t first = post(1, false, 10, at(1));
    for (std::uint64_t i = 1; i < SessionRecorder::kTransfers; ++i) post(1, true, i, at(2));
    EXPECT_EQ(recorder_->transfers().size(), SessionRecorder::kTransfers);
    const std::uint64_t last = post(1, true, 20, at(3));  // in the place of the first
    recorder_->ended(first, Status::aborted("closed"), {.kind = "shm", .how = "mapped"}, at(4));
    const auto transfers = recorder_->transfers();
    ASSERT_EQ(transfers.size(), SessionRecorder::kTransfers);
    EXPECT_EQ(transfers.front().number, first + 1);
    EXPECT_EQ(transfers.back().number, last);
    EXPECT_EQ(transfers.back().ended, TimePoint{});
    EXPECT_EQ(transfers.back().bytes, 20U);
}

TEST_F(SessionRecorderTest, OneThatHasEndedIsOneEntry) {
    const SessionTransfer whole{.pair = 3,
                                .writes = true,
                                .bytes = 8,
                                .posted = at(1),
                                .ended = at(2),
                                .outcome = StatusCode::kPeerLost,
                                .path = {.kind = "shm", .how = "mapped"}};
    const std::uint64_t number = recorder_->add(whole);
    const auto transfers = recorder_->transfers();
    ASSERT_EQ(transfers.size(), 1U);
    EXPECT_EQ(transfers[0].number, number);
    EXPECT_EQ(transfers[0].pair, 3U);
    EXPECT_TRUE(transfers[0].writes);
    EXPECT_EQ(transfers[0].ended, at(2));
    EXPECT_EQ(transfers[0].outcome, StatusCode::kPeerLost);
    EXPECT_EQ(transfers[0].path.how, "mapped");
}

TEST_F(SessionRecorderTest, RefusalsThatFollowEachOtherHideNothing) {
    add(SessionEventKind::kLost, "a", "it died");
    add(SessionEventKind::kLost, "a", "it died");
    for (int i = 0; i < 1000; ++i) add(SessionEventKind::kRefused, "a", std::to_string(i));
    add(SessionEventKind::kRefused, "b", "another session's");
    const auto events = recorder_->events();
    ASSERT_EQ(events.size(), 4U);
    EXPECT_EQ(events[1].times, 1U);
    EXPECT_EQ(events[2].times, 1000U);
    EXPECT_EQ(events[2].text, "999");
    EXPECT_EQ(events[3].times, 1U);
}

/// Under ThreadSanitizer, too.
TEST_F(SessionRecorderTest, IsReadWhileOthersWrite) {
    std::thread writer([&] {
        for (int i = 0; i < 20'000; ++i) recorder_->ended(post(1, true, 7, at(1)), {}, {}, at(2));
    });
    for (int i = 0; i < 50; ++i)
        for (const SessionTransfer& each : recorder_->transfers()) ASSERT_EQ(each.bytes, 7U);
    writer.join();
}

}  // namespace
}  // namespace pccl::runtime
