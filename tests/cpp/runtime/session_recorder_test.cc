// SPDX-License-Identifier: Apache-2.0

// What sessions did, as it is read back.
#include "csrc/runtime/flight/session_recorder.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

namespace pccl::runtime {
namespace {

class SessionRecorderTest : public testing::Test {
   protected:
    static TimePoint at(int second) { return TimePoint(std::chrono::seconds(second)); }
    void add(SessionEventKind kind, const std::string& session, const std::string& text) {
        recorder_->add_event(
            {.at = at(1), .kind = kind, .session = session, .peer = {}, .text = text});
    }
    std::uint64_t post(std::uint32_t pair, bool writes, std::uint64_t bytes, TimePoint now) {
        return recorder_->add({.pair = pair, .writes = writes, .bytes = bytes, .posted = now});
    }

    const std::unique_ptr<SessionRecorder> recorder_ = std::make_unique<SessionRecorder>();
};

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

TEST_F(SessionRecorderTest, IsShownWithNamesAndPaths) {
    const std::uint32_t pair = recorder_->add_pair("decode-3", "session \"prefill-0\"");
    post(pair, false, 10, at(1));
    const std::uint64_t ended = post(pair, true, 20, at(2));
    recorder_->ended(ended, Status::timeout("late"), {.kind = "tcp", .how = "by messages"}, at(3));
    const nlohmann::json shown = json_of(*recorder_)["transfers"];
    ASSERT_EQ(shown.size(), 2U);
    EXPECT_EQ(shown[0]["state"], "posted");
    EXPECT_TRUE(shown[0]["ended_ns"].is_null());
    EXPECT_FALSE(shown[0].contains("path"));
    EXPECT_EQ(shown[1]["state"], "failed");
    EXPECT_EQ(shown[1]["error"], to_string(StatusCode::kTimeout));
    EXPECT_EQ(shown[1]["path"], "tcp, by messages");
    EXPECT_EQ(shown[1]["session"], "decode-3");
    EXPECT_EQ(shown[1]["peer"], "session \"prefill-0\"");
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
