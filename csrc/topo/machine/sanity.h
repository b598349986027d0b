// Looks for what cannot be right, or costs a lot, and repairs what can be repaired. Each finding is
// a warning with a name; docs/topology.md lists them.
#pragma once

#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// For a machine that is complete (completion.h).
void repair(Machine& machine, Warnings& warnings);

}  // namespace pccl::topo
