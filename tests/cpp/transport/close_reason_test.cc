// SPDX-License-Identifier: Apache-2.0

// What ranks that stay make of the last words of one that leaves.
#include "csrc/transport/control/close_reason.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport {
namespace {

using testing::HasSubstr;

constexpr CloseContext kContext{.self = 0, .leaver = 1, .ranks = 4};

Status why_gone_for(const Status& reason) { return why_gone(close_reason_for(reason), kContext); }

TEST(CloseReasonTest, WhatARankLostIsLostForAll) {
    const Status status = why_gone_for(Status::peer_lost(3, "rank 3 closed its connection"));
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 3);
    EXPECT_THAT(status.message(), HasSubstr("rank 3 closed"));
}

TEST(CloseReasonTest, WhomARankWaitedForInVainIsToBlameForAll) {
    const Status status = why_gone_for(Status::timeout("timed out waiting for rank 2", 2));
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 2);
}

TEST(CloseReasonTest, MismatchesStayMismatches) {
    EXPECT_EQ(why_gone_for(Status::mismatch(2, "rank 1 runs this but rank 2 runs that")).code(),
              StatusCode::kMismatch);
}

TEST(CloseReasonTest, WhoLeavesForItsOwnReasonsIsLostItself) {
    for (const Status& reason :
         {Status::aborted("abort was called"), Status::resource_exhausted("no memory"),
          Status::peer_lost(kContext.self, "rank 0 is lost"), Status::timeout("late", 0)}) {
        const Status status = why_gone_for(reason);
        EXPECT_EQ(status.code(), StatusCode::kPeerLost) << reason.to_string();
        EXPECT_EQ(status.peer(), kContext.leaver) << reason.to_string();
        EXPECT_THAT(status.message(), HasSubstr("rank 1 has left the group"));
    }
}

TEST(CloseReasonTest, RelayedReasonsDoNotNest) {
    const Status first = why_gone_for(Status::peer_lost(3, "the process of rank 3 has ended"));
    const Status second = why_gone(close_reason_for(first), {.self = 2, .leaver = 0, .ranks = 4});
    EXPECT_EQ(second.message(), "rank 0 has left the group: the process of rank 3 has ended");
    EXPECT_EQ(second.peer(), 3);
}

/// A notice says whom a rank has lost, or differs from, and so does who passes it on: of that rank.
TEST(CloseReasonTest, RelayedNoticesNameTheFirstReporter) {
    const Status notice = reason_of(notice_of(Status::mismatch(2, "a long story")));
    const Status first = why_gone(notice, {.self = 1, .leaver = 0, .ranks = 3});
    EXPECT_EQ(first.message(), "rank 0 has left the group: it called something else than rank 2");
    const Status second = why_gone(close_reason_for(first), {.self = 2, .leaver = 1, .ranks = 3});
    EXPECT_EQ(second.message(),
              "rank 1 has left the group: rank 0 called something else than rank 2");
    EXPECT_EQ(why_gone(close_reason_for(second), {.self = 3, .leaver = 2, .ranks = 4}).message(),
              "rank 2 has left the group: rank 0 called something else than rank 2");
}

TEST(CloseReasonTest, AnyBytesAreSafe) {
    std::mt19937 random(7);
    for (int round = 0; round < 1000; ++round) {
        CloseReason close_reason{};
        std::generate_n(reinterpret_cast<unsigned char*>(&close_reason), sizeof close_reason,
                        [&] { return static_cast<unsigned char>(random()); });
        const Status status = why_gone(close_reason, kContext);
        EXPECT_FALSE(status.is_ok());
        EXPECT_GE(status.peer(), 0);
        EXPECT_LT(status.peer(), kContext.ranks);
        EXPECT_EQ(reason_of({.code = static_cast<std::uint32_t>(random()), .peer = 9}).is_ok(),
                  false);
    }
}

TEST(CloseReasonTest, NoticesKeepTheKindAndTheRank) {
    const Status reason = reason_of(notice_of(Status::peer_lost(2, "a long story")));
    EXPECT_EQ(reason.code(), StatusCode::kPeerLost);
    EXPECT_EQ(reason.peer(), 2);
    EXPECT_THAT(reason.message(), HasSubstr("rank 2"));
}

class CloseReasonReceiverTest : public testing::Test {
   protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        here_.reset(ends[0]);
        there_.reset(ends[1]);
    }
    UniqueFd here_;
    UniqueFd there_;
    CloseReasonReceiver receiver_{kContext};
};

TEST_F(CloseReasonReceiverTest, ReceivesNothingWhileThePeerIsThere) {
    EXPECT_TRUE(receiver_.receive(here_.get()).is_ok());
}

TEST_F(CloseReasonReceiverTest, ReceivesTheReasonAndKeepsIt) {
    send_close_reason(there_.get(), Status::peer_lost(2, "rank 2 is gone"));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(receiver_.receive(here_.get()).peer(), 2);
}

TEST_F(CloseReasonReceiverTest, WithoutAReasonThePeerIsLost) {
    there_.reset();
    const Status status = receiver_.receive(here_.get());
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), kContext.leaver);
}

TEST_F(CloseReasonReceiverTest, HalfACloseReasonIsNone) {
    const CloseReason close_reason = close_reason_for(Status::peer_lost(2, "rank 2 is gone"));
    const auto half = std::as_bytes(std::span(&close_reason, 1)).first(sizeof close_reason / 2);
    ASSERT_TRUE(sys::send_some(there_.get(), half).is_ok());
    EXPECT_TRUE(receiver_.receive(here_.get()).is_ok());
    there_.reset();
    EXPECT_EQ(receiver_.receive(here_.get()).peer(), kContext.leaver);
    EXPECT_FALSE(receiver_.is_silent());
}

TEST_F(CloseReasonReceiverTest, DetectsAHostThatFellSilent) {
    const UniqueFd listener =
        std::move(sys::listen_on(*sys::Address::parse("127.0.0.1:0")).value());
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    here_ = std::move(sys::connect_to(*sys::local_address(listener.get()), deadline).value());
    // Nobody takes what comes there: the kernel gives such a connection up as it does a dead one.
    sys::give_up_after(here_.get(), std::chrono::milliseconds(100));
    const std::vector<std::byte> block(1 * kMiB);
    while (*sys::send_some(here_.get(), block) > 0) continue;
    Status status;
    while (status.is_ok() && !deadline.passed()) status = receiver_.receive(here_.get());
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_TRUE(receiver_.is_silent());
}

}  // namespace
}  // namespace pccl::transport
