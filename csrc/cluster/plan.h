// SPDX-License-Identifier: Apache-2.0

// Plan from one phase to another. Computing it contacts no device.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

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
