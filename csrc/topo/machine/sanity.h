// SPDX-License-Identifier: Apache-2.0

// Checks for impossible or costly settings, and repairs of them where possible. Each finding is a
// warning with a name; docs/reference/topology.md lists them.
#pragma once

#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// Repairs a machine that is complete (completion.h).
void repair(Machine& machine, Warnings& warnings);

}  // namespace pccl::topo
