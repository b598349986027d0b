// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/unique_fd.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "csrc/base/scope_exit.h"
#include "tests/fakes/forked_child.h"

namespace pccl {
namespace {

using fakes::ForkedChild;

std::array<UniqueFd, 2> connected_pair() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

bool is_socket(int fd) {
    int type = 0;
    socklen_t bytes = sizeof type;
    return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0;
}

bool is_open(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

bool has_ended(const UniqueFd& socket) {
    pollfd interest{.fd = socket.get(), .events = POLLIN, .revents = 0};
    return ::poll(&interest, 1, 0) == 1 && (interest.revents & POLLHUP) != 0;
}

TEST(UniqueFdTest, AChildCannotReachWhatItsParentHolds) {
    const auto pair = connected_pair();
    ForkedChild child([&] {
        const bool is_written = ::send(pair[0].get(), "x", 1, MSG_NOSIGNAL) == 1;
        const bool is_shut = ::shutdown(pair[0].get(), SHUT_RDWR) == 0;
        return is_written || is_shut || is_socket(pair[0].get()) ? 1 : 0;
    });
    EXPECT_EQ(child.join(), 0);
    EXPECT_TRUE(is_socket(pair[0].get()));
    EXPECT_FALSE(has_ended(pair[1]));
    EXPECT_EQ(::recv(pair[1].get(), nullptr, 0, MSG_DONTWAIT), -1);
}

TEST(UniqueFdTest, AChildTakesNothingOutOfAnEpollSet) {
    const UniqueFd set(::epoll_create1(EPOLL_CLOEXEC));
    const UniqueFd event(::eventfd(1, EFD_CLOEXEC));
    epoll_event seen{.events = EPOLLIN, .data = {}};
    ASSERT_EQ(::epoll_ctl(set.get(), EPOLL_CTL_ADD, event.get(), &seen), 0);
    ForkedChild child(
        [&] { return ::epoll_ctl(set.get(), EPOLL_CTL_DEL, event.get(), nullptr) == 0 ? 1 : 0; });
    EXPECT_EQ(child.join(), 0);
    EXPECT_EQ(::epoll_wait(set.get(), &seen, 1, 0), 1);
}

/// A peer hears of the end of a connection, and an epoll set forgets a descriptor, only when nobody
/// has it any more.
TEST(UniqueFdTest, AChildThatLivesOnKeepsNothingOpen) {
    auto pair = connected_pair();
    auto ready = connected_pair();
    const int reported = ::dup(ready[0].get());
    ForkedChild child([&] {
        [[maybe_unused]] const auto written = ::write(reported, "x", 1);
        return ::pause();
    });
    char byte = 0;
    ASSERT_EQ(::read(ready[1].get(), &byte, 1), 1);
    pair[0].reset();
    EXPECT_TRUE(has_ended(pair[1]));
    ::close(reported);
}

TEST(UniqueFdTest, TheNumberStaysTakenInAChildUntilItIsClosed) {
    auto pair = connected_pair();
    ForkedChild child([&] {
        const int number = pair[0].get();
        if (!is_open(number) || (::fcntl(number, F_GETFD) & FD_CLOEXEC) == 0) return 1;
        pair[0].reset();
        return is_open(number) ? 2 : 0;
    });
    EXPECT_EQ(child.join(), 0);
}

TEST(UniqueFdTest, WhatWasGivenAwayOrClosedIsNotTouched) {
    auto pair = connected_pair();
    const int given = pair[0].release();
    const int number = pair[1].get();
    pair[1].reset();
    const int reused = ::fcntl(given, F_DUPFD_CLOEXEC, number);
    ASSERT_EQ(reused, number);
    ForkedChild child([&] { return is_socket(given) && is_socket(reused) ? 0 : 1; });
    EXPECT_EQ(child.join(), 0);
    ::close(given);
    ::close(reused);
}

TEST(UniqueFdTest, AMovedDescriptorIsStillHeld) {
    auto pair = connected_pair();
    UniqueFd moved(std::move(pair[0]));
    UniqueFd assigned;
    assigned = std::move(moved);
    EXPECT_TRUE(is_socket(assigned.get()));
    ForkedChild child([&] { return is_socket(assigned.get()) ? 1 : 0; });
    EXPECT_EQ(child.join(), 0);
}

TEST(UniqueFdTest, WhatAChildOpensIsItsOwn) {
    const auto before = connected_pair();
    ForkedChild child([&] {
        const auto own = connected_pair();
        if (!is_socket(own[0].get())) return 1;
        // The parent's number may stand for something else by now.
        ::dup2(own[0].get(), before[0].get());
        ForkedChild grandchild([&] {
            if (is_socket(own[0].get())) return 2;
            return is_socket(before[0].get()) ? 0 : 3;
        });
        return grandchild.join();
    });
    EXPECT_EQ(child.join(), 0);
}

TEST(UniqueFdTest, AChildNeedsNoRoomForDescriptors) {
    const auto pair = connected_pair();
    rlimit usual{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
    const rlimit full{.rlim_cur = 3, .rlim_max = usual.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
    const ScopeExit restore([&] { ::setrlimit(RLIMIT_NOFILE, &usual); });
    ForkedChild child([&] { return is_socket(pair[0].get()) || is_socket(pair[1].get()) ? 1 : 0; });
    EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace pccl
