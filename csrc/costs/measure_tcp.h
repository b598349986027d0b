// What TCP costs: on loopback, and by a connection to another host.
#pragma once

#include "csrc/base/clock.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/ping_pong_thread.h"

namespace pccl::costs {

/// As MachineCosts has them of loopback.
struct TcpCosts {
    Figure round;
    Figure message;
    Figure byte;
    bool is_steady = false;  // repeated exchanges took much the same: nobody disturbed them
};

struct MeasuringTime {
    Duration budget;    // for exchanges, once the other end has answered
    Deadline deadline;  // of each of them
};

/// Of a connection whose other end answers echoes (sys/socket/echo.h). Errors: kTimeout, and as the
/// calls of sys/socket/socket.h.
[[nodiscard]] PCCL_API Result<TcpCosts> measure_connection(int fd, const MeasuringTime& time);

/// `peer_thread` runs on another core. kUnavailable where there is no loopback.
[[nodiscard]] Status measure_tcp(PingPongThread& peer_thread, MachineCosts& into,
                                 Deadline deadline);

}  // namespace pccl::costs
