// SPDX-License-Identifier: Apache-2.0

// Measures the cost of a byte that is copied, added, or passed to another core, by its location.
#pragma once

#include <pccl/deadline.h>
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/ping_pong.h"

namespace pccl::costs {

/// Measures all levels. `peer_thread` runs on another core; null: only figures of a single core are
/// measured. Adds the variation of repeated measurements to `spread`.
void measure_bytes(PingPongThread* peer_thread, MachineCosts& into, Deadline deadline,
                   double& spread);

}  // namespace pccl::costs
