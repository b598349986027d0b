// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "tests/cpp/sys/connected_sockets.h"
#include "tests/fakes/deadlines.h"

namespace pccl::sys {
namespace {

using fakes::test_deadline;

class StreamTest : public testing::TestWithParam<std::string> {
   protected:
    /// Skips where this host lacks the address family.
    void SetUp() override {
        const auto probe = listen_on(here());
        if (!probe.is_ok()) GTEST_SKIP() << probe.status().to_string();
    }
    static Address here() { return Address::parse(GetParam()).value(); }
};

TEST_P(StreamTest, CarriesBytesBothWays) {
    const Connection pair = connected(here());
    const std::vector<std::byte> sent(100'000, std::byte{7});
    for (const auto& [from, to] :
         {std::pair(&pair.client, &pair.server), {&pair.server, &pair.client}}) {
        ASSERT_TRUE(send_all(from->get(), sent, test_deadline()).is_ok());
        std::vector<std::byte> received(sent.size());
        ASSERT_TRUE(receive_all(to->get(), received, test_deadline()).is_ok());
        EXPECT_EQ(received, sent);
    }
}

TEST_P(StreamTest, NeverWaitsAndIsNeverInherited) {
    const Connection pair = connected(here());
    for (const int fd : {pair.client.get(), pair.server.get()}) {
        EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
        std::array<std::byte, 4> into{};
        EXPECT_EQ(receive_some(fd, into).value(), 0U);
    }
    const std::vector<std::byte> much(1 << 20);
    std::size_t taken = 1;
    for (int i = 0; i < 1000 && taken > 0; ++i) taken = send_some(pair.client.get(), much).value();
    EXPECT_EQ(taken, 0U) << "a full socket takes nothing";
}

TEST_P(StreamTest, GathersPieces) {
    const Connection pair = connected(here());
    std::string head = "head ";
    std::string body = "and body";
    const std::array<iovec, 2> pieces{iovec{head.data(), head.size()},
                                      iovec{body.data(), body.size()}};
    ASSERT_EQ(send_some(pair.client.get(), pieces).value(), 13U);
    std::string received(13, ' ');
    ASSERT_TRUE(
        receive_all(pair.server.get(), std::as_writable_bytes(std::span(received)), test_deadline())
            .is_ok());
    EXPECT_EQ(received, "head and body");
}

TEST_P(StreamTest, AClosedConnectionIsAnErrorAndNoSignal) {
    Connection pair = connected(here());
    EXPECT_FALSE(peer_has_closed(pair.client.get()));
    pair.server.reset();
    std::array<std::byte, 1> one{};
    EXPECT_EQ(receive_all(pair.client.get(), one, test_deadline()).code(), StatusCode::kPeerLost);
    EXPECT_TRUE(peer_has_closed(pair.client.get()));
    Status status;
    const Deadline deadline = test_deadline();
    while (status.is_ok() && !deadline.passed())
        status = send_some(pair.client.get(), one).status();
    EXPECT_EQ(status.code(), StatusCode::kPeerLost) << status.to_string();
}

TEST_P(StreamTest, ShuttingDownReachesThePeer) {
    const Connection pair = connected(here());
    shut_down(pair.client.get());
    std::array<std::byte, 1> one{};
    EXPECT_EQ(receive_all(pair.server.get(), one, test_deadline()).code(), StatusCode::kPeerLost);
    EXPECT_EQ(send_some(pair.client.get(), one).status().code(), StatusCode::kPeerLost);
}

TEST_P(StreamTest, WaitsEndAtTheirDeadline) {
    const Connection pair = connected(here());
    std::array<std::byte, 1> one{};
    EXPECT_EQ(
        receive_all(pair.server.get(), one, Deadline::after(std::chrono::milliseconds(30))).code(),
        StatusCode::kTimeout);
    const std::vector<std::byte> much(64 << 20);
    EXPECT_EQ(
        send_all(pair.server.get(), much, Deadline::after(std::chrono::milliseconds(30))).code(),
        StatusCode::kTimeout);
}

TEST_P(StreamTest, NobodyListensMeansUnavailable) {
    Address free = here();
    {
        const auto listener = listen_on(here());
        free = local_address(listener->get()).value();
    }
    EXPECT_EQ(connect_to(free, test_deadline()).status().code(), StatusCode::kUnavailable);
}

INSTANTIATE_TEST_SUITE_P(Families, StreamTest,
                         testing::Values("127.0.0.1:0", "[::1]:0", "unix:@pccl-stream-test"));

TEST(SocketTest, GrantsTheBuffersOrReportsTheirSize) {
    constexpr std::size_t kWish = 128 * kKiB;  // below every system's limit
    const Connection pair =
        connected(Address::parse("127.0.0.1:0").value(), {.buffer_bytes = kWish});
    EXPECT_GE(granted_send_buffer(pair.client.get()), kWish);
    EXPECT_GE(granted_send_buffer(pair.server.get()), kWish);
}

TEST(SocketTest, NobodyIsHisOwnPeer) {
    const UniqueFd socket = std::move(make_socket(Address::parse("127.0.0.1:0").value()).value());
    const Address any = Address::parse("127.0.0.1:0").value();
    ASSERT_EQ(::bind(socket.get(), any.raw(), any.raw_bytes()), 0);
    const Address own = local_address(socket.get()).value();
    auto connected = connect_step(socket.get(), own);
    for (const Deadline deadline = test_deadline();
         connected.is_ok() && !*connected && !deadline.passed();)
        connected = connect_step(socket.get(), own);
    EXPECT_EQ(connected.status().code(), StatusCode::kUnavailable);
    EXPECT_NE(connected.status().message().find("nobody listens at " + own.to_string()),
              std::string::npos);
}

TEST(SocketTest, ConnectsFromTheGivenAddress) {
    const UniqueFd listener = std::move(listen_on(Address::parse("127.0.0.1:0").value()).value());
    const Address there = local_address(listener.get()).value();
    const UniqueFd socket = std::move(make_socket(there).value());
    ASSERT_TRUE(connect_from(socket.get(), Address::parse("127.0.0.9:77").value()).is_ok());
    while (!connect_step(socket.get(), there).value()) {
    }
    EXPECT_EQ(local_address(socket.get())->ip_text(), "127.0.0.9");
    EXPECT_NE(local_address(socket.get())->port(), 77);
    const UniqueFd other = std::move(make_socket(there).value());
    EXPECT_EQ(connect_from(other.get(), Address::parse("192.0.2.77:0").value()).code(),
              StatusCode::kUnavailable);
}

TEST(SocketTest, BytesThatThePeerDoesNotReadAreAcknowledgedByItsHost) {
    const Connection pair = connected(Address::parse("127.0.0.1:0").value());
    const std::vector<std::byte> sent(1000);
    ASSERT_TRUE(send_all(pair.client.get(), sent, test_deadline()).is_ok());
    for (const Deadline end = test_deadline(); unacknowledged_bytes(pair.client.get()) > 0;)
        ASSERT_FALSE(end.passed());
    EXPECT_EQ(unacknowledged_bytes(-1), 0U);
}

TEST(SocketTest, AcceptFindsNobody) {
    const auto listener = listen_on(Address::parse("127.0.0.1:0").value());
    EXPECT_FALSE(accept_next(listener->get()).value().has_value());
}

TEST(SocketTest, TwoCannotListenAtOneAddress) {
    const auto listener = listen_on(Address::parse("127.0.0.1:0").value());
    EXPECT_FALSE(listen_on(local_address(listener->get()).value()).is_ok());
}

TEST(SocketTest, ResolvesLiteralsAndRefusesOtherText) {
    const auto found = resolve("127.0.0.1", 99);
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    ASSERT_FALSE(found->empty());
    EXPECT_EQ(found->front().to_string(), "127.0.0.1:99");
    EXPECT_EQ(resolve("no such host !", 1).status().code(), StatusCode::kUnavailable);
}

TEST(SocketTest, WaitingSkipsAbsentDescriptors) {
    const std::array<Interest, 2> nothing{};
    EXPECT_FALSE(wait_for_any(nothing, std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace pccl::sys
