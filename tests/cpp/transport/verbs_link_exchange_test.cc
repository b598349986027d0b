// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/verbs/link_exchange.h"
#include "tests/cpp/transport/verbs_link_ends.h"

namespace pccl::transport::verbs {
namespace {

using testing::HasSubstr;

TEST(LinkExchangeTest, AnEndComesBackAsItWas) {
    const LinkEnd end = link_end();
    const auto parsed = LinkEnd::parse(end.serialise());
    ASSERT_TRUE(parsed.is_ok()) << parsed.status().to_string();
    EXPECT_EQ(*parsed, end);
    const auto lane = parse_lane(serialise_lane(lane_end(7, 5)));
    ASSERT_TRUE(lane.is_ok()) << lane.status().to_string();
    EXPECT_EQ(*lane, lane_end(7, 5));
}

TEST(LinkExchangeTest, TheLargestEndFitsIntoItsLimit) {
    LinkEnd end = link_end();
    end.memory.resize(LinkEnd::kMostRanges, end.memory.front());
    for (PeerRange& range : end.memory) range.keys.resize(LinkEnd::kMostDevices, 1);
    end.lanes.resize(LinkEnd::kMostLanes, lane_end(7, 5));
    EXPECT_LE(end.serialise().size(), LinkEnd::kLongest);
    EXPECT_EQ(LinkEnd::parse(end.serialise()).value(), end);
}

TEST(LinkExchangeTest, TruncatedAndLongerBytesAreRefused) {
    const std::string bytes = link_end().serialise();
    for (std::size_t length = 0; length < bytes.size(); ++length)
        EXPECT_EQ(LinkEnd::parse(bytes.substr(0, length)).status().code(),
                  StatusCode::kInvalidArgument)
            << length;
    EXPECT_FALSE(LinkEnd::parse(bytes + '\0').is_ok());
    const std::string lane = serialise_lane(lane_end(0, 1));
    for (std::size_t length = 0; length < lane.size(); ++length)
        EXPECT_FALSE(parse_lane(lane.substr(0, length)).is_ok()) << length;
    EXPECT_FALSE(parse_lane(lane + '\0').is_ok());
}

TEST(LinkExchangeTest, AFlippedBitIsRefusedOrPartOfTheValue) {
    for_each_flip(link_end().serialise(), [](const std::string& changed) {
        const auto parsed = LinkEnd::parse(changed);
        if (!parsed.is_ok()) return;
        EXPECT_EQ(parsed->serialise(), changed);
    });
    for_each_flip(serialise_lane(lane_end(0, 1)), [](const std::string& changed) {
        const auto parsed = parse_lane(changed);
        if (!parsed.is_ok()) return;
        EXPECT_EQ(serialise_lane(*parsed), changed);
    });
}

TEST(LinkExchangeTest, ValuesThatCannotBeAreRefused) {
    const auto code_of = [](auto change) {
        LinkEnd end = link_end();
        change(end);
        return LinkEnd::parse(end.serialise()).status().code();
    };
    constexpr auto kInvalid = StatusCode::kInvalidArgument;
    EXPECT_EQ(code_of([](auto&) {}), StatusCode::kOk);
    EXPECT_EQ(code_of([](auto& end) { end.ring_bytes = 0; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.ring_bytes = 32 * kKiB; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.ring_bytes = 96 * kKiB; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.ring_bytes = 128 * kMiB; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.receives = 0; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.receives = LinkEnd::kMostReceives + 1; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.memory.clear(); }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes.clear(); }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes.resize(LinkEnd::kMostLanes + 1, end.lanes[0]); }),
              kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.memory[0].address = 0; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.memory[0].bytes = 0; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.memory[0].bytes = ~std::uint64_t{0}; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].device = 2; }), kInvalid) << "there are two";
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].partner = LinkEnd::kMostLanes; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].pair.number = 1 << 24; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].pair.sequence = 1 << 24; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].pair.mtu = 0; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].pair.mtu = 6; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].pair.reads = 0; }), kInvalid);
    EXPECT_EQ(code_of([](auto& end) { end.lanes[0].pair.reads = 17; }), kInvalid);
}

TEST(LinkExchangeTest, DescribesWhereConnectionsByRdmaCmAreTaken) {
    for (const char* const ip : {"10.0.0.5", "fd00::5"}) {
        LinkEnd end = link_end();
        const auto address = sys::Address::from_ip(ip, 4711).value();
        end.way = ConnectWay::kRdmaCm;
        end.lanes[0].door = CmDoor::at(address, {1, 2, 3});
        const LinkEnd parsed = LinkEnd::parse(end.serialise()).value();
        EXPECT_EQ(parsed, end);
        EXPECT_EQ(parsed.lanes[0].door.to_address().value(), address);
    }
}

TEST(LinkExchangeTest, EndsAgreeOnAWayToConnect) {
    using enum ConnectWay;
    EXPECT_EQ(agree(kAuto, kAuto).value(), kDirect);
    EXPECT_EQ(agree(kAuto, kRdmaCm).value(), kRdmaCm);
    EXPECT_EQ(agree(kRdmaCm, kAuto).value(), kRdmaCm);
    EXPECT_EQ(agree(kDirect, kAuto).value(), kDirect);
    const Status refused = agree(kDirect, kRdmaCm).status();
    EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
    EXPECT_THAT(refused.message(), HasSubstr("PCCL_IB_CONNECT"));
}

TEST(LinkExchangeTest, AnotherVersionIsUnsupported) {
    std::string bytes = link_end().serialise();
    ++bytes[4];
    const Status other = LinkEnd::parse(bytes).status();
    EXPECT_EQ(other.code(), StatusCode::kUnsupported);
    EXPECT_THAT(other.message(), HasSubstr("one version of PCCL"));
}

/// A reader at one end of a connection.
class LinkEndReaderTest : public testing::Test {
   protected:
    void SetUp() override {
        std::array<int, 2> ends{};
        ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        here_.reset(ends[0]);
        peer_.reset(ends[1]);
    }
    void write(std::string_view bytes) {
        ASSERT_EQ(::send(peer_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(bytes.size()));
    }
    Result<std::optional<LinkEnd>> read() { return reader_.advance(here_.get()); }
    Status error_of(std::string_view bytes) {
        write(bytes);
        return read().status();
    }
    static std::string framed(std::string_view body) {
        ByteWriter out;
        out.text(body);
        return out.take();
    }

    UniqueFd here_;
    UniqueFd peer_;
    LinkEndReader reader_;
};

TEST_F(LinkEndReaderTest, AMessageArrivesByteByByte) {
    const std::string message = message_of(link_end());
    for (std::size_t i = 0; i + 1 < message.size(); ++i) {
        write(message.substr(i, 1));
        const auto none = read();
        ASSERT_TRUE(none.is_ok()) << none.status().to_string();
        ASSERT_FALSE(none->has_value());
    }
    write(message.substr(message.size() - 1));
    const auto end = read();
    ASSERT_TRUE(end.is_ok()) << end.status().to_string();
    ASSERT_TRUE(end->has_value());
    EXPECT_EQ(**end, link_end());
}

TEST_F(LinkEndReaderTest, BytesBehindTheMessageStayInTheSocket) {
    write(message_of(link_end()) + "close reason");
    ASSERT_TRUE(read().value().has_value());
    std::array<char, 32> rest{};
    EXPECT_EQ(::recv(here_.get(), rest.data(), rest.size(), 0), 12);
}

TEST_F(LinkEndReaderTest, ARefusalIsTheError) {
    const Status refusal = Status::resource_exhausted("no queue pair is left");
    const Status received = error_of(message_of(refusal));
    EXPECT_EQ(received.code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(received.message(), HasSubstr("no queue pair is left"));
}

TEST_F(LinkEndReaderTest, ALongRefusalIsCut) {
    const Status received = error_of(message_of(Status::unavailable(std::string(100'000, 'x'))));
    EXPECT_EQ(received.code(), StatusCode::kUnavailable);
}

TEST_F(LinkEndReaderTest, ARefusalWithoutAReasonIsMalformed) {
    EXPECT_EQ(error_of(message_of(Status::ok())).code(), StatusCode::kInvalidArgument);
}

TEST_F(LinkEndReaderTest, AnEmptyMessageIsMalformed) {
    EXPECT_EQ(error_of(framed("")).code(), StatusCode::kInvalidArgument);
}

TEST_F(LinkEndReaderTest, AnUnknownKindIsMalformed) {
    EXPECT_EQ(error_of(framed(std::string(1, '\2'))).code(), StatusCode::kInvalidArgument);
}

TEST_F(LinkEndReaderTest, ALengthBeyondTheLimitIsRefusedAtOnce) {
    EXPECT_EQ(error_of("\xff\xff\xff\xff").code(), StatusCode::kInvalidArgument);
}

TEST_F(LinkEndReaderTest, TheEndOfTheConnectionIsAnError) {
    write(message_of(link_end()).substr(0, 20));
    peer_.reset();
    EXPECT_FALSE(read().is_ok());
}

}  // namespace
}  // namespace pccl::transport::verbs
