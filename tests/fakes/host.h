// SPDX-License-Identifier: Apache-2.0

// A process for tests: its control plane, one transport, and what becomes of both's news.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/tcp/tcp_transport.h"
#include "csrc/transport/transport.h"
#include "tests/fakes/loopback/loopback_fabric.h"

namespace pccl::fakes {

/// What a process has to reach others by.
struct Member {
    std::unique_ptr<transport::ControlPlane> control;
    std::unique_ptr<transport::Transport> transport;
};

using MemberMaker = std::function<Result<Member>(transport::Waiter&)>;

/// `waiter` outlives it.
[[nodiscard]] Result<Member> shm_member(transport::Waiter& waiter);
/// At an interface in the syntax of PCCL_SOCKET_IFNAME.
[[nodiscard]] Result<Member> tcp_member(transport::Waiter& waiter, const std::string& interface,
                                        const transport::tcp::TcpOptions& options = {});
[[nodiscard]] Result<Member> loopback_member(transport::loopback::LoopbackFabric& fabric,
                                             transport::Waiter& waiter);

/// Answers nothing and takes links as it is told to. One thread at a time serves it.
class Host : public transport::ControlHost, public transport::LinkReceiver {
   public:
    /// What cannot be made ends the test program.
    explicit Host(const MemberMaker& make);
    ~Host() override = default;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;

    [[nodiscard]] transport::ControlPlane& control() { return *member_.control; }
    [[nodiscard]] transport::Transport& transport() { return *member_.transport; }
    [[nodiscard]] transport::Waiter& waiter() { return *waiter_; }
    /// For peers.
    [[nodiscard]] transport::PeerAddress address() const;
    /// Goes on with all that comes in, after news or `longest`.
    void serve(Duration longest);

    std::string answer(const transport::LinkRequest& request) override;
    void noticed(const transport::LinkRequest& request, const Status& reason) override;
    void arrived(transport::Arrival arrival) override;
    Status watch(int fd) override;
    void unwatch(int fd) override;

   private:
    std::unique_ptr<transport::Waiter> waiter_;
    Member member_;
    UniqueFd news_;  // epoll set
};

}  // namespace pccl::fakes
