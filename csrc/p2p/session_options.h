// What a session is made with.
#pragma once

#include <chrono>
#include <string>

#include "csrc/base/clock.h"

namespace pccl::p2p {

struct SessionOptions {
    std::string name;  // check_name() says what it may be
    /// An address of this host ("10.0.0.4") or what PCCL_SOCKET_IFNAME takes, which it is if empty.
    std::string listen{};
    /// "shm,tcp", as PCCL_TRANSPORTS, which it is if empty.
    std::string transports{};
    /// Of each stream over TCP that this session sends on: large transfers use all of them. 1 to
    /// 16; 0: PCCL_TCP_SOCKETS.
    int tcp_sockets = 0;
    Duration connect_timeout = std::chrono::seconds(10);
};

}  // namespace pccl::p2p
