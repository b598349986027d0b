// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/descriptors.h"
#include "tests/fakes/deadlines.h"

namespace pccl::sys {
namespace {

using fakes::test_deadline;

struct Connection {
    UniqueFd client;
    UniqueFd server;
};

Address unix_address(const std::string& purpose) {
    return Address::from_unix_name(concat("pccl-test-", ::getpid(), "-", purpose)).value();
}

Connection connected(const Address& at, const StreamOptions& options = {}) {
    UniqueFd listener = std::move(listen_on(at, options).value());
    UniqueFd client = std::move(
        connect_to(local_address(listener.get()).value(), test_deadline(), options).value());
    const Interest readable{.fd = listener.get(), .input = true};
    EXPECT_TRUE(wait_for_any({&readable, 1}, std::chrono::seconds(30)));
    UniqueFd server = std::move(accept_next(listener.get(), options).value().value());
    return {std::move(client), std::move(server)};
}

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

TEST(SocketTest, GrantsTheBuffersOrSaysWhatItGranted) {
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

FdMessage wait_for_fds(int socket) {
    while (true) {
        auto fd_message = receive_descriptors(socket);
        EXPECT_TRUE(fd_message.is_ok()) << fd_message.status().to_string();
        if (!fd_message.is_ok()) return {};
        if (fd_message->has_value()) return std::move(**fd_message);
    }
}

TEST(DescriptorsTest, ArriveOpenWithTheirTag) {
    const Connection pair = connected(unix_address("pass"));
    EXPECT_FALSE(receive_descriptors(pair.server.get()).value().has_value());
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    UniqueFd read_end(ends[0]);
    UniqueFd write_end(ends[1]);
    const std::array<int, 3> passed{write_end.get(), read_end.get(), write_end.get()};
    ASSERT_TRUE(send_descriptors(pair.client.get(), std::byte{'M'}, passed).value());
    const FdMessage fd_message = wait_for_fds(pair.server.get());
    EXPECT_EQ(fd_message.tag, std::byte{'M'});
    ASSERT_EQ(fd_message.descriptors.size(), 3U);
    for (const UniqueFd& fd : fd_message.descriptors)
        EXPECT_NE(::fcntl(fd.get(), F_GETFD) & FD_CLOEXEC, 0);
    ASSERT_EQ(::write(fd_message.descriptors[0].get(), "x", 1), 1);
    char read_back = 0;
    ASSERT_EQ(::read(read_end.get(), &read_back, 1), 1);
    EXPECT_EQ(read_back, 'x');
}

TEST(DescriptorsTest, ATagMayComeAlone) {
    const Connection pair = connected(unix_address("alone"));
    ASSERT_TRUE(send_descriptors(pair.client.get(), std::byte{9}, {}).value());
    EXPECT_TRUE(wait_for_fds(pair.server.get()).descriptors.empty());
}

std::size_t open_descriptors() {
    const std::filesystem::directory_iterator entries("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

TEST(DescriptorsTest, TooManyAreRefusedAtBothEnds) {
    const Connection pair = connected(unix_address("many"));
    const std::array<int, kMostDescriptors + 20> many{};
    EXPECT_EQ(send_descriptors(pair.client.get(), std::byte{1}, many).status().code(),
              StatusCode::kInvalidArgument);

    const std::size_t before = open_descriptors();
    std::byte tag{1};
    iovec piece{&tag, 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof many)> control{};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    *header = {
        .cmsg_len = CMSG_LEN(sizeof many), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    ASSERT_EQ(::sendmsg(pair.client.get(), &message, 0), 1);
    EXPECT_EQ(receive_descriptors(pair.server.get()).status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(open_descriptors(), before) << "those that did arrive are closed";
}

TEST(DescriptorsTest, APeerThatLeavesIsLost) {
    Connection pair = connected(unix_address("leave"));
    pair.client.reset();
    EXPECT_EQ(receive_descriptors(pair.server.get()).status().code(), StatusCode::kPeerLost);
    EXPECT_EQ(send_descriptors(pair.server.get(), std::byte{1}, {}).status().code(),
              StatusCode::kPeerLost);
}

TEST(DescriptorsTest, TheKernelTellsWhoIsThere) {
    const Connection pair = connected(unix_address("who"));
    for (const int fd : {pair.client.get(), pair.server.get()}) {
        const auto who = peer_credentials(fd);
        ASSERT_TRUE(who.is_ok());
        EXPECT_EQ(who->pid, ::getpid());
        EXPECT_EQ(who->uid, ::geteuid());
    }
}

}  // namespace
}  // namespace pccl::sys
