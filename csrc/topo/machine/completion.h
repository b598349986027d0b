// SPDX-License-Identifier: Apache-2.0

// Completion of a machine's description with the user's assumptions, or else with usual values,
// and its repair. Each kind of assumed attribute, and each repair, gives a warning;
// docs/reference/topology.md lists them.
#pragma once

#include <optional>

#include <pccl/status.h>
#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// User's assumptions for missing attributes.
struct Assumptions {
    std::optional<int> sm{};         // 10 x compute capability, 10 to 999
    std::optional<int> nvlinks{};    // of each GPU, to an NVSwitch, 0 to 1024
    std::optional<int> net_speed{};  // Mb/s of each port, at least 1
    bool peer_to_peer = true;        // false: GPUs reach each other through the CPU only
    bool multi_node_nvlink = false;  // the NVLinks of all hosts meet in one switch
};

/// Checks the ranges. kInvalidArgument: an assumption is out of range.
[[nodiscard]] Status check(const Assumptions& assume);

/// Completes the machine: every GPU and port then has the attributes that Graph reads, except those
/// that repair() replaces.
void complete(Machine& machine, const Assumptions& assume, Warnings& warnings);

/// Checks a complete machine for impossible or costly settings, and repairs them where possible
/// (sanity.cc).
void repair(Machine& machine, Warnings& warnings);

}  // namespace pccl::topo
