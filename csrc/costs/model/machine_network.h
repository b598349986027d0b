// SPDX-License-Identifier: Apache-2.0

// Model of one machine as a network for the replay of schedules. It uses the costs of steps by
// which groups choose algorithms.
#pragma once

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/costs/machine_costs.h"
#include "csrc/schedule/simulator/network.h"

namespace pccl::costs {

struct MachineRanks {
    int ranks = 1;
    int cores = 1;                 // cores that the ranks may use
    bool by_shared_memory = true;  // false: TCP over loopback
};

[[nodiscard]] PCCL_API Result<schedule::SimulatedNetwork> machine_network(
    const MachineRanks& ranks, const MachineCosts& costs);

/// Returns the speed of a rank's messages to another rank of its host through shared memory.
[[nodiscard]] PCCL_API Result<schedule::LinkSpeed> memory_speed(int ranks_on_host,
                                                                const MachineCosts& costs);

}  // namespace pccl::costs
