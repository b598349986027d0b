// SPDX-License-Identifier: Apache-2.0

// Plan from one phase to another. Computing it contacts no device.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Plan of one switch.
struct SwitchPlan {
    std::string name;
    Circuits from;
    Circuits to;
    Change change;
    std::string xml;  // request that would be sent; empty for a fabric in this process
};

struct Plan {
    std::string from;  // empty: nothing is connected
    std::string to;
    std::vector<SwitchPlan> switches = {};  // switches that change
    std::vector<RankLink> dark = {};    // links of both phases that move, dark during the switch
    std::vector<RankLink> lost = {};    // links of `from` only
    std::vector<RankLink> gained = {};  // links of `to` only
    /// Estimated time without light: control, plus the slowest switch's settling.
    std::chrono::duration<double> estimate{};
};

/// Phase with the circuits that carry its links; null phase: nothing is connected.
struct PhaseCircuits {
    const Phase* phase = nullptr;
    CircuitsBySwitch circuits;
};

[[nodiscard]] PCCL_API Plan make_plan(const Description& description, const PhaseCircuits& from,
                                      const PhaseCircuits& to);
/// Makes a plan between two phases of the description. kInvalidArgument contains a phase that does
/// not exist, and the nearest name.
[[nodiscard]] PCCL_API Result<Plan> make_plan(const Description& description,
                                              const std::string& from, const std::string& to);
/// Returns the phase of that name.
[[nodiscard]] PCCL_API Result<const Phase*> find_phase(const Description& description,
                                                       const std::string& name);

}  // namespace pccl::cluster
