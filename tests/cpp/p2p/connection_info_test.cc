// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/connection/connection_info.h"

#include <gtest/gtest.h>

#include "csrc/p2p/connection/handshake.h"
#include "tests/cpp/p2p/pair.h"

namespace pccl::p2p {
namespace {

class ConnectionInfoTest : public testing::Test {
   protected:
    const std::unique_ptr<Session> session_ = session("prefill-0", "shm,tcp");
    const std::string bytes_ = session_->connection_info();
};

TEST_F(ConnectionInfoTest, IsTheSameEachTimeAndComesBackWhole) {
    EXPECT_EQ(session_->connection_info(), bytes_);
    const auto info = ConnectionInfo::deserialise(bytes_);
    ASSERT_TRUE(info.is_ok()) << info.status().to_string();
    EXPECT_EQ(info->id, session_->id());
    EXPECT_EQ(info->serialise(), bytes_);
    EXPECT_LE(bytes_.size(), ConnectionInfo::kLongest);
}

TEST_F(ConnectionInfoTest, NoPartAndNoDamagedCopyOfItIsTaken) {
    for (std::size_t length = 0; length < bytes_.size(); ++length)
        EXPECT_FALSE(ConnectionInfo::deserialise(bytes_.substr(0, length)).is_ok()) << length;
    for (std::size_t at = 0; at < bytes_.size(); ++at) {
        std::string damaged = bytes_;
        damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
        EXPECT_FALSE(ConnectionInfo::deserialise(damaged).is_ok()) << at;
    }
    EXPECT_FALSE(ConnectionInfo::deserialise(bytes_ + "x").is_ok());
    EXPECT_FALSE(ConnectionInfo::deserialise(std::string(1 << 20, 'x')).is_ok());
}

TEST_F(ConnectionInfoTest, AnotherVersionIsNamed) {
    std::string later = bytes_;
    later[2] = 9;
    EXPECT_EQ(ConnectionInfo::deserialise(later).status().code(), StatusCode::kUnsupported);
}

constexpr bootstrap::CoreClaim kClaim{.cores = 16, .core_set = 11, .tcp_threads = 3};

TEST_F(ConnectionInfoTest, HandshakesComeBackWhole) {
    const auto from = ConnectionInfo::deserialise(bytes_).value();
    const std::string hello = frame_of(
        Hello{.number = 7, .reaches = true, .cores = kClaim, .ended = {3, 4}, .from = from});
    const auto parsed = parse_handshake(std::string_view(hello).substr(4));
    ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
    const auto& back = std::get<Hello>(*parsed);
    EXPECT_EQ(back.number, 7U);
    EXPECT_TRUE(back.reaches);
    EXPECT_EQ(back.ended, (std::vector<std::uint64_t>{3, 4}));
    EXPECT_EQ(back.cores, kClaim);
    EXPECT_EQ(back.from.serialise(), bytes_);
    for (std::size_t length = 0; length < hello.size() - 4; ++length)
        EXPECT_FALSE(parse_handshake(hello.substr(4, length)).is_ok()) << length;
}

TEST_F(ConnectionInfoTest, AnswersAndLaneGreetingsComeBackWhole) {
    const std::string welcome = frame_of(Welcome{.number = 8, .cores = kClaim}).substr(4);
    EXPECT_EQ(std::get<Welcome>(parse_handshake(welcome).value()).cores, kClaim);
    const std::string lane =
        frame_of(LaneGreeting{.number = 9, .lane = 3, .is_ready = true}).substr(4);
    const auto back = std::get<LaneGreeting>(parse_handshake(lane).value());
    EXPECT_EQ(back.number, 9U);
    EXPECT_EQ(back.lane, 3);
    EXPECT_TRUE(back.is_ready);
    for (const std::string& whole : {welcome, lane})
        for (std::size_t length = 0; length < whole.size(); ++length)
            EXPECT_FALSE(parse_handshake(whole.substr(0, length)).is_ok()) << length;
}

TEST_F(ConnectionInfoTest, AHandshakeOfTooManyEndedConnectionsIsRefused) {
    const auto from = ConnectionInfo::deserialise(bytes_).value();
    for (const std::size_t count : {Hello::kMostEnded, Hello::kMostEnded + 1}) {
        const std::string hello =
            frame_of(Hello{.ended = std::vector<std::uint64_t>(count, 1), .from = from});
        const Status parsed = parse_handshake(std::string_view(hello).substr(4)).status();
        EXPECT_EQ(parsed.is_ok(), count == Hello::kMostEnded) << parsed.to_string();
    }
}

TEST(DescriptorTest, IsShortAndCanonical) {
    const auto owner = session("a", "shm");
    const Stamped memory(*owner, 1000, 1);
    const std::string bytes = memory.local->serialised_descriptor();
    EXPECT_LT(bytes.size(), 256U);
    EXPECT_EQ(memory.local->serialised_descriptor(), bytes);
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        std::string damaged = bytes;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        EXPECT_FALSE(import_descriptor(owner->id(), damaged).is_ok()) << at;
    }
}

}  // namespace
}  // namespace pccl::p2p
