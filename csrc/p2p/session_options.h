// SPDX-License-Identifier: Apache-2.0

// Options of a session.
#pragma once

#include <chrono>
#include <string>

#include <pccl/deadline.h>

namespace pccl::p2p {

struct SessionOptions {
    std::string name;  // as check_name() requires
    /// Address of this host ("10.0.0.4"), or a value as for PCCL_SOCKET_IFNAME. Empty:
    /// PCCL_SOCKET_IFNAME.
    std::string listen{};
    /// Transports, such as "shm,tcp". Empty: PCCL_TRANSPORTS.
    std::string transports{};
    /// Sockets per TCP stream on which this session sends; large transfers use all of them. 1 to
    /// 16; 0: PCCL_TCP_SOCKETS.
    int tcp_sockets = 0;
    Duration connect_timeout = std::chrono::seconds(10);
};

}  // namespace pccl::p2p
