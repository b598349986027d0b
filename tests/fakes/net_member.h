// SPDX-License-Identifier: Apache-2.0

// A process for tests whose links go over the strict net plug-in.
#pragma once

#include "csrc/transport/control/socket_control_plane.h"
#include "csrc/transport/netplugin/net_transport.h"
#include "csrc/transport/tcp/tcp_transport.h"
#include "tests/fakes/host.h"

namespace pccl::fakes {

[[nodiscard]] inline Result<Member> net_member(std::shared_ptr<transport::Waiter> waiter,
                                               transport::netplugin::NetOptions options) {
    options.stream = transport::tcp::TcpOptions().stream;
    PCCL_ASSIGN_OR_RETURN(
        auto control,
        transport::SocketControlPlane::create(
            {.within_host = false, .interface = "127.0.0.0/8", .stream = options.stream}));
    PCCL_ASSIGN_OR_RETURN(const transport::NetworkSide here, control->between_hosts());
    PCCL_ASSIGN_OR_RETURN(
        auto made, transport::netplugin::NetTransport::create(std::move(waiter), here, options));
    return Member{std::move(control), std::move(made)};
}

/// `waiter` outlives it.
[[nodiscard]] inline Result<Member> net_member(transport::Waiter& waiter,
                                               transport::netplugin::NetOptions options) {
    return net_member(std::shared_ptr<transport::Waiter>(std::shared_ptr<void>(), &waiter),
                      std::move(options));
}

}  // namespace pccl::fakes
