// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "csrc/base/bytes.h"
#include "csrc/transport/verbs/rma_messages.h"
#include "tests/cpp/transport/verbs_link_ends.h"
#include "tests/fakes/memory_links.h"

namespace pccl::transport::verbs {
namespace {

using testing::HasSubstr;

RmaMessage opened(Status failure = Status::ok()) {
    return {.kind = RmaMessage::Kind::kOpened,
            .lane = 3,
            .pair = 5,
            .failure = std::move(failure),
            .end = lane_end(1, 77)};
}

void expect_equal(const RmaMessage& a, const RmaMessage& b) {
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.lane, b.lane);
    EXPECT_EQ(a.pair, b.pair);
    EXPECT_EQ(a.immediates, b.immediates);
    EXPECT_EQ(a.end, b.end);
    EXPECT_EQ(a.failure.code(), b.failure.code());
    EXPECT_EQ(a.failure.message(), b.failure.message());
}

TEST(RmaMessagesTest, AMessageComesBackAsItWas) {
    for (const RmaMessage& message :
         {opened(), opened(Status::resource_exhausted("no queue pair is left")),
          RmaMessage{.kind = RmaMessage::Kind::kOpen, .lane = 15, .pair = 1, .end = lane_end(0, 1)},
          RmaMessage{.kind = RmaMessage::Kind::kClose, .lane = 2, .pair = 0xffff'ffff},
          RmaMessage{.kind = RmaMessage::Kind::kClosed, .lane = 2, .pair = 1, .immediates = 17},
          RmaMessage{.kind = RmaMessage::Kind::kCredit, .lane = 0, .pair = 9, .immediates = 1}}) {
        const auto parsed = RmaMessage::parse(message.serialise());
        ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
        expect_equal(*parsed, message);
    }
}

TEST(RmaMessagesTest, TheLongestFailureFitsIntoTheLimit) {
    const std::string bytes = opened(Status::unavailable(std::string(100'000, 'x'))).serialise();
    EXPECT_LE(bytes.size(), RmaMessage::kLongest);
    EXPECT_EQ(RmaMessage::parse(bytes)->failure.code(), StatusCode::kUnavailable);
}

TEST(RmaMessagesTest, TruncatedAndLongerBytesAreRefused) {
    for (const RmaMessage& message :
         {opened(Status::unavailable("why")), RmaMessage{.kind = RmaMessage::Kind::kCredit}}) {
        const std::string bytes = message.serialise();
        for (std::size_t length = 0; length < bytes.size(); ++length)
            EXPECT_EQ(RmaMessage::parse(bytes.substr(0, length)).status().code(),
                      StatusCode::kInvalidArgument)
                << length;
        EXPECT_FALSE(RmaMessage::parse(bytes + '\0').is_ok());
    }
}

TEST(RmaMessagesTest, AnUnknownKindIsRefused) {
    std::string bytes = RmaMessage{.kind = RmaMessage::Kind::kCredit}.serialise();
    ++bytes[0];
    EXPECT_THAT(std::string(RmaMessage::parse(bytes).status().message()), HasSubstr("kind 5"));
}

TEST(RmaMessagesTest, AFlippedBitIsRefusedOrPartOfTheValue) {
    for_each_flip(opened(Status::unavailable("why")).serialise(), [](const std::string& changed) {
        const auto parsed = RmaMessage::parse(changed);
        if (!parsed.is_ok()) return;
        EXPECT_EQ(parsed->serialise().size(), changed.size());
    });
}

TEST(RmaMessagesTest, LanesBeyondTheLimitAreRefused) {
    RmaMessage message = opened();
    message.lane = LinkEnd::kMostLanes;
    EXPECT_EQ(RmaMessage::parse(message.serialise()).status().code(), StatusCode::kInvalidArgument);
    message = opened();
    message.end.device = LinkEnd::kMostDevices;
    EXPECT_EQ(RmaMessage::parse(message.serialise()).status().code(), StatusCode::kInvalidArgument);
}

/// Two mailboxes, one of which writes what the other one reads.
class RmaMailboxTest : public testing::Test {
   protected:
    void write(std::string_view bytes) {
        const auto all = std::as_bytes(std::span(bytes));
        stream_->bytes.insert(stream_->bytes.end(), all.begin(), all.end());
    }
    static std::string framed(std::string_view body) {
        ByteWriter out;
        out.text(body);
        return out.take();
    }

    std::shared_ptr<fakes::MemoryStream> stream_ = std::make_shared<fakes::MemoryStream>();
    fakes::MemorySendLink out_{stream_};
    fakes::MemoryRecvLink in_{stream_};
    RmaMailbox writer_{out_, in_};
    RmaMailbox reader_{out_, in_};
};

TEST_F(RmaMailboxTest, MessagesArriveInTheirOrder) {
    RmaMessage second = opened(Status::unavailable("why"));
    second.lane = 4;
    writer_.add(opened());
    writer_.add(second);
    EXPECT_FALSE(reader_.next().value().has_value()) << "nothing is sent yet";
    ASSERT_TRUE(writer_.send().is_ok());
    expect_equal(reader_.next().value().value(), opened());
    expect_equal(reader_.next().value().value(), second);
    EXPECT_FALSE(reader_.next().value().has_value());
    ASSERT_TRUE(writer_.send().is_ok());
    EXPECT_FALSE(reader_.next().value().has_value()) << "nothing is sent twice";
}

TEST_F(RmaMailboxTest, APartOfAMessageIsNone) {
    const std::string message = framed(opened().serialise());
    for (std::size_t i = 0; i + 1 < message.size(); ++i) {
        write(message.substr(i, 1));
        ASSERT_FALSE(reader_.next().value().has_value()) << i;
    }
    write(message.substr(message.size() - 1));
    expect_equal(reader_.next().value().value(), opened());
}

TEST_F(RmaMailboxTest, ALengthBeyondTheLimitIsRefusedAtOnce) {
    write("\xff\xff\xff\x7f");
    const Status wrong = reader_.next().status();
    EXPECT_EQ(wrong.code(), StatusCode::kPeerLost);
    EXPECT_THAT(wrong.message(), HasSubstr("2147483647 bytes"));
}

TEST_F(RmaMailboxTest, MalformedMessagesAreErrors) {
    write(framed("nonsense"));
    const Status wrong = reader_.next().status();
    EXPECT_EQ(wrong.code(), StatusCode::kPeerLost);
    EXPECT_THAT(wrong.message(), HasSubstr("malformed"));
}

}  // namespace
}  // namespace pccl::transport::verbs
