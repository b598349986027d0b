// SPDX-License-Identifier: Apache-2.0

// Measures the latency between two threads: over a cache line, or by a wake-up.
#pragma once

#include <pccl/deadline.h>
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/ping_pong_thread.h"

namespace pccl::costs {

/// Binds `peer_thread` to another core than this thread's, at a medium distance, and measures
/// `core_round_trip`. Returns false, without effect, if there is none.
[[nodiscard]] bool meet_on_another_core(PingPongThread& peer_thread, MachineCosts& into,
                                        Deadline deadline);
/// Measures the wake-up of `peer_thread` on its core.
void measure_wake(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline);
/// Binds `peer_thread` to this thread's core and measures a wake-up between the two.
void measure_shared_core(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline);

}  // namespace pccl::costs
