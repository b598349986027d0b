// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/socket/descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <iterator>
#include <string>

#include "csrc/base/text/text.h"
#include "tests/cpp/sys/connected_sockets.h"

namespace pccl::sys {
namespace {

Address unix_address(const std::string& purpose) {
    return Address::from_unix_name(concat("pccl-test-", ::getpid(), "-", purpose)).value();
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

TEST(DescriptorsTest, TheKernelReportsThePeer) {
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
