// One machine as a network for the replay of schedules: as the costs of its steps have it, by which
// groups choose.
#pragma once

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/schedule/simulator/network.h"

namespace pccl::comm {

struct MachineRanks {
    int ranks = 1;
    int cores = 1;                 // that they may use
    bool by_shared_memory = true;  // else TCP over loopback
};

[[nodiscard]] PCCL_API Result<schedule::Network> machine_network(const MachineRanks& ranks,
                                                                 const costs::MachineCosts& costs);

/// Of a rank's messages to another of its host, through memory that they share.
[[nodiscard]] PCCL_API Result<schedule::LinkSpeed> memory_speed(int ranks_on_host,
                                                                const costs::MachineCosts& costs);

}  // namespace pccl::comm
