// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/host.h"

#include <sys/epoll.h>

#include <cerrno>

#include "csrc/base/assert.h"
#include "csrc/transport/control/socket_control_plane.h"
#include "csrc/transport/shm/shm_transport.h"

namespace pccl::fakes {

using namespace transport;  // NOLINT(google-build-using-namespace): the vocabulary of this file

Result<Member> shm_member(Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(auto control, SocketControlPlane::create({.between_hosts = false}));
    PCCL_ASSIGN_OR_RETURN(const HostSide here, control->within_host());
    return Member{std::move(control), std::make_unique<shm::ShmTransport>(waiter, here)};
}

Result<Member> tcp_member(Waiter& waiter, const std::string& interface,
                          const tcp::TcpOptions& options) {
    PCCL_ASSIGN_OR_RETURN(auto control, SocketControlPlane::create({.within_host = false,
                                                                    .interface = interface,
                                                                    .stream = options.stream}));
    PCCL_ASSIGN_OR_RETURN(const NetworkSide here, control->between_hosts());
    PCCL_ASSIGN_OR_RETURN(auto made, tcp::TcpTransport::create(waiter, here, options));
    return Member{std::move(control), std::move(made)};
}

Result<Member> loopback_member(loopback::LoopbackFabric& fabric, Waiter& waiter) {
    PCCL_ASSIGN_OR_RETURN(auto member, fabric.join(waiter));
    return Member{std::move(member.control), std::move(member.transport)};
}

Host::Host(const MemberMaker& make)
    : waiter_(std::move(Waiter::create().value())),
      member_(std::move(make(*waiter_).value())),
      news_(::epoll_create1(EPOLL_CLOEXEC)) {
    for (const int fd : control().poll_fds()) PCCL_ASSERT(watch(fd).is_ok());
}

PeerAddress Host::address() const {
    PeerAddress address{.control = member_.control->address(), .links = {}};
    address.links[member_.transport->kind()] = member_.transport->addresses();
    return address;
}

void Host::serve(Duration longest) {
    epoll_event event{};
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
    ::epoll_wait(news_.get(), &event, 1, static_cast<int>(wait.count()));
    control().advance(*this);
    transport().advance(*this);
}

std::string Host::answer(const LinkRequest&) { return {}; }

void Host::noticed(const LinkRequest&, const Status&) {}

void Host::arrived(Arrival arrival) { transport().accept(std::move(arrival), *this); }

Status Host::watch(int fd) {
    epoll_event interest{.events = EPOLLIN, .data = {}};
    if (::epoll_ctl(news_.get(), EPOLL_CTL_ADD, fd, &interest) == 0) return Status::ok();
    return Status::from_errno(errno, "cannot watch a connection");
}

void Host::unwatch(int fd) { ::epoll_ctl(news_.get(), EPOLL_CTL_DEL, fd, nullptr); }

}  // namespace pccl::fakes
