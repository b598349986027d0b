// What a byte costs that is copied, added, or handed to another core, by where it lies.
#pragma once

#include "csrc/base/clock.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/ping_pong_thread.h"

namespace pccl::costs {

/// `peer_thread` runs on another core, or is null: then only what one core does by itself. How
/// unlike repeated measurements were is added to `spread`.
void measure_bytes(PingPongThread* peer_thread, MachineCosts& into, Deadline deadline,
                   double& spread);

}  // namespace pccl::costs
