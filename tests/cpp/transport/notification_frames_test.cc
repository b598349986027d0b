// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/transport/rma.h"
#include "csrc/transport/rma/notifications.h"
#include "tests/fakes/memory_links.h"

namespace pccl::transport {
namespace {

std::span<const std::byte> text_bytes(std::string_view text) {
    return std::as_bytes(std::span(text));
}

/// Immediates whose states a test sets, of both ends.
class ScriptedImmediates final : public RmaImmediates {
   public:
    [[nodiscard]] State state_of(const RmaImmediate&) const override { return state; }
    [[nodiscard]] std::uint64_t lost_pairs() const override { return lost; }
    bool has_arrived(const RmaImmediate& immediate) override { return immediate.number <= arrived; }

    State state = State::kInFlight;
    std::uint64_t lost = 0;
    std::uint32_t arrived = 0;
};

class NotificationFramesTest : public testing::Test {
   protected:
    void announce(std::string_view text, std::uint64_t over, std::uint32_t number) {
        ASSERT_TRUE(sender_.may_announce());
        sender_.announce(text_bytes(text), {.over = over},
                         {{.lane = 0, .pair = 1, .number = number}});
    }
    /// Sends what is due after so many pieces.
    void reach(std::uint64_t over, std::uint64_t failed = 0) {
        sender_.reached({.over = over, .failed = failed}, immediates_);
        ASSERT_TRUE(sender_.send(out_).is_ok());
    }
    std::string next() {
        const auto got = receiver_.next(in_, immediates_);
        if (!got.is_ok()) return got.status().to_string();
        if (!*got) return "none";
        return {reinterpret_cast<const char*>((*got)->data()), (*got)->size()};
    }
    void write(std::string_view bytes) {
        const auto all = text_bytes(bytes);
        stream_->bytes.insert(stream_->bytes.end(), all.begin(), all.end());
    }

    std::shared_ptr<fakes::MemoryStream> stream_ = std::make_shared<fakes::MemoryStream>();
    fakes::MemorySendLink out_{stream_};
    fakes::MemoryRecvLink in_{stream_};
    ScriptedImmediates immediates_;
    RmaNotificationSender sender_;
    RmaNotificationReceiver receiver_;
};

TEST_F(NotificationFramesTest, AnAnnouncedOneIsDueWhenItsImmediateArrives) {
    announce("one", 1, 1);
    announce("two", 2, 2);
    reach(0);
    EXPECT_EQ(next(), "none");
    immediates_.arrived = 1;
    EXPECT_EQ(next(), "one");
    EXPECT_EQ(next(), "none");
    immediates_.arrived = 2;
    EXPECT_EQ(next(), "two");
    immediates_.state = RmaImmediates::State::kArrived;
    reach(2);
    EXPECT_TRUE(sender_.is_empty());
    EXPECT_EQ(next(), "none");
}

TEST_F(NotificationFramesTest, OneThatWaitsForPiecesKeepsItsPlace) {
    announce("one", 1, 1);
    sender_.add(text_bytes("two"), {.over = 2});
    EXPECT_FALSE(sender_.may_announce());
    immediates_.arrived = 1;
    reach(2);
    EXPECT_EQ(next(), "one");
    EXPECT_EQ(next(), "none") << "the first one is not settled";
    immediates_.state = RmaImmediates::State::kArrived;
    reach(2);
    EXPECT_EQ(next(), "two");
    EXPECT_TRUE(sender_.may_announce());
}

TEST_F(NotificationFramesTest, ALostImmediateIsConfirmedAfterThePieces) {
    announce("one", 1, 1);
    immediates_.state = RmaImmediates::State::kLost;
    reach(0);
    EXPECT_EQ(next(), "none");
    reach(1);
    EXPECT_EQ(next(), "one");
    EXPECT_TRUE(sender_.is_empty());
}

TEST_F(NotificationFramesTest, AVerdictOnADeliveredOneChangesNothing) {
    announce("one", 1, 1);
    reach(0);
    immediates_.arrived = 1;
    EXPECT_EQ(next(), "one");
    immediates_.state = RmaImmediates::State::kLost;
    reach(1);
    announce("two", 2, 1);
    reach(1);
    EXPECT_EQ(next(), "two") << "it is there once";
    EXPECT_EQ(next(), "none");
}

TEST_F(NotificationFramesTest, OneBehindAFailedPieceIsDropped) {
    announce("one", 1, 1);
    announce("two", 2, 2);
    sender_.reached({.over = 1, .failed = 1}, immediates_);
    // The failure of the second piece does not matter any more.
    reach(2, 1);
    sender_.add(text_bytes("three"), {.over = 2, .failed = 1});
    reach(2, 1);
    EXPECT_EQ(next(), "three");
    EXPECT_EQ(next(), "none");
}

TEST_F(NotificationFramesTest, WhatFailsLaterDropsNoEarlierOne) {
    announce("one", 1, 1);
    sender_.reached({.over = 1, .failed = 0}, immediates_);
    sender_.reached({.over = 2, .failed = 1}, immediates_);
    immediates_.state = RmaImmediates::State::kLost;
    reach(2, 1);
    EXPECT_EQ(next(), "one");
}

TEST_F(NotificationFramesTest, TheEndOfAQueuePairConfirmsWhatHadArrived) {
    announce("one", 1, 1);
    immediates_.state = RmaImmediates::State::kArrived;
    reach(1);
    EXPECT_TRUE(sender_.is_empty());
    EXPECT_EQ(next(), "none") << "it has not been read before the end of the queue pair";
    immediates_.lost = 1;
    reach(1);
    EXPECT_EQ(next(), "one");
    reach(1);
    EXPECT_EQ(stream_->consumed, stream_->bytes.size());
}

TEST_F(NotificationFramesTest, FramesArriveInParts) {
    announce("one", 1, 1);
    reach(0);
    immediates_.state = RmaImmediates::State::kLost;
    reach(1);
    const std::vector<std::byte> all = std::exchange(stream_->bytes, {});
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
        stream_->bytes.push_back(all[i]);
        ASSERT_EQ(next(), "none") << i;
    }
    stream_->bytes.push_back(all.back());
    EXPECT_EQ(next(), "one");
}

TEST_F(NotificationFramesTest, ImpossibleFramesAreErrors) {
    const std::vector<std::string> frames{
        std::string("\0\0\0\0", 4),                     // no bytes
        std::string("\xff\xff\xff\x3f", 4),             // too many
        std::string("\1\0\0\x40\0\0\0\0", 8),           // behind no immediate
        std::string("\1\0\0\x40\x11\0\0\0", 8),         // behind 17
        std::string("\1\0\0\x80", 4),                   // a verdict with bytes
        std::string("\0\0\0\x80\0\0\0\0\0\0\0\0", 12),  // on a notification that did not come
        std::string("\0\0\0\xc0\xff\xff\xff\xff\xff\xff\xff\xff", 12)};
    for (const std::string& frame : frames) {
        stream_->bytes.clear();
        stream_->consumed = 0;
        receiver_ = {};
        write(frame);
        const auto got = receiver_.next(in_, immediates_);
        EXPECT_EQ(got.status().code(), StatusCode::kPeerLost);
    }
}

TEST_F(NotificationFramesTest, NotificationsThatAreNeverDueAreBounded) {
    constexpr std::size_t kMany = 1'000;
    std::vector<std::byte> frames;
    const RmaImmediate never{.lane = 0, .pair = 1, .number = 1};
    for (std::size_t i = 0; i < kMany; ++i)
        append_notification(frames, text_bytes("x"), {&never, 1});
    stream_->bytes = frames;
    for (std::size_t i = 0; i < kMany; ++i) ASSERT_EQ(next(), "none");
    EXPECT_LT(stream_->consumed, frames.size() / 5) << "the rest stays in the stream";
}

}  // namespace
}  // namespace pccl::transport
