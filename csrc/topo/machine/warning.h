// SPDX-License-Identifier: Apache-2.0

// Warning about a machine, with its repair.
#pragma once

#include <string>
#include <vector>

namespace pccl::topo {

struct Warning {
    std::string name;     // "slow_switch_link": stable, documented in docs/reference/topology.md
    std::string subject;  // "gpu3", "net1 (mlx5_2)", a bus id, a line of a file
    std::string message;  // the fault and its cost
    std::string repair;   // the value assumed instead; empty: no repair

    friend bool operator==(const Warning&, const Warning&) = default;
};

using Warnings = std::vector<Warning>;

}  // namespace pccl::topo
