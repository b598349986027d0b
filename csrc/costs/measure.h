// SPDX-License-Identifier: Apache-2.0

// Measures the costs of a collective's steps on this machine.
#pragma once

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/costs/machine_costs.h"
#include "csrc/costs/ping_pong.h"

namespace pccl::costs {

/// Takes about `budget`, on two cores that this process may use, or on one if there is only one.
/// The last-level cache gets its minimum number of repetitions even after that time: with 26 ms the
/// whole took 27 to 33 ms on Xeons whose cores have 2 MiB each. Figures that could not be measured
/// keep their defaults, also when a measured value is impossible. The caller sets machine, boot and
/// date.
[[nodiscard]] PCCL_API MachineCosts measure(Duration budget = std::chrono::milliseconds(23));

/// Measures all levels. `peer_thread` runs on another core; null: only figures of a single core are
/// measured. Adds the variation of repeated measurements to `spread`.
void measure_bytes(PingPongThread* peer_thread, MachineCosts& into, Deadline deadline,
                   double& spread);

}  // namespace pccl::costs
