// Settings from the environment: the only place that reads it. docs/configuration.md lists every key.
//
// Read once, at the first use in a process; later changes of the environment have no effect.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "csrc/base/export.h"
#include "csrc/base/log.h"

namespace pccl {

struct Config {
    LogLevel log_level = LogLevel::kWarning;  // PCCL_LOG_LEVEL
    std::string transports;                   // PCCL_TRANSPORTS: "shm,tcp"; empty = all
    std::string socket_ifname;                // PCCL_SOCKET_IFNAME: "eth", "=eth0", "^lo", or a subnet "10.0.0.0/8"
    std::string secret_file;                  // PCCL_SECRET_FILE: the job secret; empty = from the rendezvous store
    int tcp_sockets = 2;                      // PCCL_TCP_SOCKETS: data sockets a direction and peer, 1 to 16
    std::size_t shm_ring_bytes = 0;           // PCCL_SHM_RING_BYTES: 0 = by the number of ranks
    std::chrono::milliseconds connect_timeout{30'000};  // PCCL_CONNECT_TIMEOUT_MS
    std::string algorithm;                    // PCCL_ALGORITHM: "all_reduce=ring,all_gather=bruck"; empty = the selector's choice
};

/// What the environment says; a value that cannot be used is named in a warning and ignored.
[[nodiscard]] PCCL_API const Config& process_config();

}  // namespace pccl
