// SPDX-License-Identifier: Apache-2.0

// Network of a process: its control plane and transports.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::runtime {

/// Options of the network.
struct NetworkOptions {
    transport::TransportFlags allowed = transport::TransportFlags::all();
    /// Interface to listen on for other hosts, in the syntax of PCCL_SOCKET_IFNAME.
    std::string interface{};
    /// Interface for the control plane between ranks; empty: `interface`.
    std::string management{};
    int tcp_sockets = 0;  // transport::tcp::TcpOptions::data_sockets; 0: PCCL_TCP_SOCKETS
};

struct Network {
    std::unique_ptr<transport::ControlPlane> control;
    std::vector<std::unique_ptr<transport::Transport>> transports;  // in order of preference
};

}  // namespace pccl::runtime
