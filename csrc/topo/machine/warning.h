// What looks wrong about a machine, and what was done about it.
#pragma once

#include <string>
#include <vector>

namespace pccl::topo {

struct Warning {
    std::string name;     // "slow_switch_link": stable, documented in docs/topology.md
    std::string subject;  // "gpu3", "net1 (mlx5_2)", a bus id, a line of a file
    std::string message;  // what is wrong, and what it costs
    std::string repair;   // what was assumed instead; empty: nothing could be done

    friend bool operator==(const Warning&, const Warning&) = default;
};

using Warnings = std::vector<Warning>;

}  // namespace pccl::topo
