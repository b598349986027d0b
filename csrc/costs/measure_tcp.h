// SPDX-License-Identifier: Apache-2.0

// Measures the costs of TCP on loopback, and on a connection to another host.
#pragma once

#include <pccl/deadline.h>
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/ping_pong.h"

namespace pccl::costs {

/// Costs of one connection, as MachineCosts has them for loopback.
struct TcpCosts {
    Figure round;
    Figure message;
    Figure byte;
    bool is_steady = false;  // repeated exchanges took about equal times, without disturbance
};

struct MeasuringTime {
    Duration budget;    // for exchanges, after the first answer
    Deadline deadline;  // of each exchange
};

/// Measures a connection whose other end answers echoes (sys/socket/echo.h). Errors are kTimeout
/// and those of sys/socket/socket.h.
[[nodiscard]] PCCL_API Result<TcpCosts> measure_connection(int fd, const MeasuringTime& time);

/// Measures loopback; `peer_thread` must run on another core. kUnavailable if there is no loopback.
[[nodiscard]] Status measure_tcp(PingPongThread& peer_thread, MachineCosts& into,
                                 Deadline deadline);

}  // namespace pccl::costs
