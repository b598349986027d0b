// SPDX-License-Identifier: Apache-2.0

// Circuits that carry the links of a phase.
#pragma once

#include <pccl/export.h>
#include <pccl/phases.h>
#include <pccl/status.h>
#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

/// Assigns to each link of the phase the first free port of its two ranks on one switch; both links
/// of a duplex pair get the same ports. Ports of electrical switches are always free: ports that
/// links join get a common VLAN. kInvalidArgument contains a link for which no port is left.
[[nodiscard]] PCCL_API Result<CircuitsBySwitch> circuits_of(const Description& description,
                                                            const Phase& phase);

}  // namespace pccl::cluster
