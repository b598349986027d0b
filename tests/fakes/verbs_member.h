// SPDX-License-Identifier: Apache-2.0

// A process for tests whose transport is RDMA.
#pragma once

#include "csrc/transport/control/socket_control_plane.h"
#include "csrc/transport/tcp/tcp_transport.h"
#include "csrc/transport/verbs/verbs_transport.h"
#include "tests/fakes/host.h"

namespace pccl::fakes {

/// `waiter` outlives it.
[[nodiscard]] inline Result<Member> verbs_member(transport::Waiter& waiter,
                                                 transport::verbs::VerbsOptions options) {
    options.soft = true;
    options.stream = transport::tcp::TcpOptions().stream;
    PCCL_ASSIGN_OR_RETURN(
        auto control,
        transport::SocketControlPlane::create(
            {.within_host = false, .interface = "127.0.0.0/8", .stream = options.stream}));
    PCCL_ASSIGN_OR_RETURN(const transport::NetworkSide here, control->between_hosts());
    PCCL_ASSIGN_OR_RETURN(auto made,
                          transport::verbs::VerbsTransport::create(waiter, here, options));
    return Member{std::move(control), std::move(made)};
}

}  // namespace pccl::fakes
