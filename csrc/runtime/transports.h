// SPDX-License-Identifier: Apache-2.0

// Construction of a process's network. No other file depends on all transports.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/doorbell.h"
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

struct TransportNetwork {
    std::unique_ptr<transport::ControlPlane> control;
    std::vector<std::unique_ptr<transport::Transport>> transports;  // in order of preference
};

/// Parses a list such as "shm,tcp"; empty: all. Returns kInvalidArgument with the unknown name and
/// the valid ones.
[[nodiscard]] PCCL_API Result<transport::TransportFlags> transports_named(std::string_view names);

/// Starts the net plug-in, where it is used: that calls fork(), and so must not happen under a lock
/// that fork() takes. make_network() returns the error.
void prepare_network(transport::TransportFlags allowed);

/// Makes the control plane and the transports, fastest first. Returns kUnavailable when this
/// machine has none of `options.allowed`.
[[nodiscard]] Result<TransportNetwork> make_network(
    const NetworkOptions& options, const std::shared_ptr<transport::Waiter>& waiter);

}  // namespace pccl::runtime
