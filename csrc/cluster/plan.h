// What it takes to get from one phase to another. Pure: nothing is asked of any device.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Of one switch.
struct SwitchPlan {
    std::string name;
    Circuits from;
    Circuits to;
    Change change;
    std::string xml;  // what it would be sent; empty for a fabric of this process
};

struct Plan {
    std::string from;  // empty: from nothing connected
    std::string to;
    std::vector<SwitchPlan> switches = {};  // those with something to change
    std::vector<RankLink> dark = {};  // links of both phases whose circuits change: dark meanwhile
    std::vector<RankLink> lost = {};  // of `from` alone
    std::vector<RankLink> gained = {};  // of `to` alone
    /// How long light is away: control, and the slowest switch's settling.
    std::chrono::duration<double> estimate{};
};

/// A phase with the circuits that carry its links; a null phase: nothing is connected.
struct PhaseCircuits {
    const Phase* phase = nullptr;
    CircuitsBySwitch circuits;
};

[[nodiscard]] PCCL_API Plan make_plan(const Description& description, const PhaseCircuits& from,
                                      const PhaseCircuits& to);
/// Between two phases of the description; kInvalidArgument names one that it does not have, and the
/// nearest that it has.
[[nodiscard]] PCCL_API Result<Plan> make_plan(const Description& description,
                                              const std::string& from, const std::string& to);
/// The phase of that name.
[[nodiscard]] PCCL_API Result<const Phase*> find_phase(const Description& description,
                                                       const std::string& name);

}  // namespace pccl::cluster
