// What ranks that stay make of the last words of one that leaves.
#include "csrc/transport/control/farewell.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <random>
#include <span>
#include <vector>

#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport {
namespace {

using testing::HasSubstr;

constexpr Departure kDeparture{.self = 0, .leaver = 1, .ranks = 4};

Status heard(const Status& said) { return why_gone(farewell_for(said), kDeparture); }

TEST(FarewellTest, WhatARankLostIsLostForAll) {
    const Status status = heard(Status::peer_lost(3, "rank 3 closed its connection"));
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), 3);
    EXPECT_THAT(status.message(), HasSubstr("rank 3 closed"));
}

TEST(FarewellTest, WhomARankWaitedForInVainIsToBlameForAll) {
    const Status status = heard(Status::timeout("timed out waiting for rank 2", 2));
    EXPECT_EQ(status.code(), StatusCode::kTimeout);
    EXPECT_EQ(status.peer(), 2);
}

TEST(FarewellTest, MismatchesStayMismatches) {
    EXPECT_EQ(heard(Status::mismatch(2, "rank 1 runs this but rank 2 runs that")).code(),
              StatusCode::kMismatch);
}

TEST(FarewellTest, WhoLeavesForItsOwnReasonsIsLostItself) {
    for (const Status& said :
         {Status::aborted("abort was called"), Status::resource_exhausted("no memory"),
          Status::peer_lost(kDeparture.self, "rank 0 is lost"), Status::timeout("late", 0)}) {
        const Status status = heard(said);
        EXPECT_EQ(status.code(), StatusCode::kPeerLost) << said.to_string();
        EXPECT_EQ(status.peer(), kDeparture.leaver) << said.to_string();
        EXPECT_THAT(status.message(), HasSubstr("rank 1 has left the group"));
    }
}

TEST(FarewellTest, RelayedReasonsDoNotNest) {
    const Status first = heard(Status::peer_lost(3, "the process of rank 3 has ended"));
    const Status second = why_gone(farewell_for(first), {.self = 2, .leaver = 0, .ranks = 4});
    EXPECT_EQ(second.message(), "rank 0 has left the group: the process of rank 3 has ended");
    EXPECT_EQ(second.peer(), 3);
}

/// A notice says whom a rank has lost, or differs from, and so does who passes it on: of that rank.
TEST(FarewellTest, RelayedNoticesAreAboutWhoToldFirst) {
    const Status notice = reason_of(notice_of(Status::mismatch(2, "a long story")));
    const Status first = why_gone(notice, {.self = 1, .leaver = 0, .ranks = 3});
    EXPECT_EQ(first.message(), "rank 0 has left the group: it called something else than rank 2");
    const Status second = why_gone(farewell_for(first), {.self = 2, .leaver = 1, .ranks = 3});
    EXPECT_EQ(second.message(),
              "rank 1 has left the group: rank 0 called something else than rank 2");
    EXPECT_EQ(why_gone(farewell_for(second), {.self = 3, .leaver = 2, .ranks = 4}).message(),
              "rank 2 has left the group: rank 0 called something else than rank 2");
}

TEST(FarewellTest, AnyBytesAreSafe) {
    std::mt19937 random(7);
    for (int round = 0; round < 1000; ++round) {
        Farewell farewell{};
        std::generate_n(reinterpret_cast<unsigned char*>(&farewell), sizeof farewell,
                        [&] { return static_cast<unsigned char>(random()); });
        const Status status = why_gone(farewell, kDeparture);
        EXPECT_FALSE(status.is_ok());
        EXPECT_GE(status.peer(), 0);
        EXPECT_LT(status.peer(), kDeparture.ranks);
        EXPECT_EQ(reason_of({.code = static_cast<std::uint32_t>(random()), .peer = 9}).is_ok(),
                  false);
    }
}

TEST(FarewellTest, NoticesKeepTheKindAndTheRank) {
    const Status reason = reason_of(notice_of(Status::peer_lost(2, "a long story")));
    EXPECT_EQ(reason.code(), StatusCode::kPeerLost);
    EXPECT_EQ(reason.peer(), 2);
    EXPECT_THAT(reason.message(), HasSubstr("rank 2"));
}

class FarewellListenerTest : public testing::Test {
   protected:
    void SetUp() override {
        int ends[2];
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
        here_.reset(ends[0]);
        there_.reset(ends[1]);
    }
    UniqueFd here_;
    UniqueFd there_;
    FarewellListener listener_{kDeparture};
};

TEST_F(FarewellListenerTest, HearsNothingWhileThePeerIsThere) {
    EXPECT_TRUE(listener_.listen(here_.get()).is_ok());
}

TEST_F(FarewellListenerTest, HearsTheReasonAndKeepsIt) {
    say_farewell(there_.get(), Status::peer_lost(2, "rank 2 is gone"));
    for (int i = 0; i < 2; ++i) EXPECT_EQ(listener_.listen(here_.get()).peer(), 2);
}

TEST_F(FarewellListenerTest, WithoutAWordThePeerIsLost) {
    there_.reset();
    const Status status = listener_.listen(here_.get());
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_EQ(status.peer(), kDeparture.leaver);
}

TEST_F(FarewellListenerTest, HalfAFarewellIsNone) {
    const Farewell farewell = farewell_for(Status::peer_lost(2, "rank 2 is gone"));
    const auto half = std::as_bytes(std::span(&farewell, 1)).first(sizeof farewell / 2);
    ASSERT_TRUE(sys::send_some(there_.get(), half).is_ok());
    EXPECT_TRUE(listener_.listen(here_.get()).is_ok());
    there_.reset();
    EXPECT_EQ(listener_.listen(here_.get()).peer(), kDeparture.leaver);
    EXPECT_FALSE(listener_.is_silent());
}

TEST_F(FarewellListenerTest, TellsAHostThatFellSilent) {
    const UniqueFd listener =
        std::move(sys::listen_on(*sys::Address::parse("127.0.0.1:0")).value());
    const Deadline deadline = Deadline::after(std::chrono::seconds(30));
    here_ = std::move(sys::connect_to(*sys::local_address(listener.get()), deadline).value());
    // Nobody takes what comes there: the kernel gives such a connection up as it does a dead one.
    sys::give_up_after(here_.get(), std::chrono::milliseconds(100));
    const std::vector<std::byte> block(1 * kMiB);
    while (*sys::send_some(here_.get(), block) > 0) continue;
    Status status;
    while (status.is_ok() && !deadline.passed()) status = listener_.listen(here_.get());
    EXPECT_EQ(status.code(), StatusCode::kPeerLost);
    EXPECT_TRUE(listener_.is_silent());
}

}  // namespace
}  // namespace pccl::transport
