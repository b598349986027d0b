// What a process has to reach others by.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::runtime {

/// What is asked for.
struct NetworkOptions {
    transport::TransportFlags allowed = transport::TransportFlags::all();
    /// Where to listen for other hosts, in the syntax of PCCL_SOCKET_IFNAME.
    std::string interface{};
    /// Where ranks ask and tell each other; empty: at the same.
    std::string management{};
    int tcp_sockets = 0;  // transport::tcp::TcpOptions::data_sockets; 0: PCCL_TCP_SOCKETS
};

struct Network {
    std::unique_ptr<transport::ControlPlane> control;
    std::vector<std::unique_ptr<transport::Transport>> transports;  // in order of preference
};

}  // namespace pccl::runtime
