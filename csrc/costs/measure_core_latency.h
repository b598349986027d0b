// What it costs to hand something to another thread: over a cache line, or by waking it.
#pragma once

#include "csrc/base/clock.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/ping_pong_thread.h"

namespace pccl::costs {

/// Binds `peer_thread` to another core than this thread's, at a middling distance, and measures
/// `core_round_trip`; false, and nothing, where there is none.
[[nodiscard]] bool meet_on_another_core(PingPongThread& peer_thread, MachineCosts& into,
                                        Deadline deadline);
/// On the core of `peer_thread`.
void measure_wake(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline);
/// Binds `peer_thread` to this thread's core.
void measure_shared_core(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline);

}  // namespace pccl::costs
