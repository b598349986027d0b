// SPDX-License-Identifier: Apache-2.0

// Checks that phases, and circuits for them, fit the cluster.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pccl/export.h>
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Returns the rank at each port of a switch that has a device.
[[nodiscard]] std::map<int, Rank> ranks_at(const Description& description,
                                           const std::string& of_switch);

/// Checks a phase. kInvalidArgument: its name is invalid, a link has a rank that does not exist, or
/// there are too few ports.
[[nodiscard]] PCCL_API Status check_phase(const Description& description, const Phase& phase);

/// Checks that circuits implement the phase: all optical switches together carry exactly the links
/// that circuits_of() assigns to them, over any ports of the two ranks; electrical switches have
/// the circuits of circuits_of(). kInvalidArgument if not.
[[nodiscard]] PCCL_API Status check_circuits(const Description& description, const Phase& phase,
                                             const CircuitsBySwitch& circuits);

}  // namespace pccl::cluster
