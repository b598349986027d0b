// Whether what a program gives a cluster is what that can be: phases, and the circuits of one.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// The rank at each port of a switch at which a device is.
[[nodiscard]] std::map<int, Rank> ranks_at(const Description& description,
                                           const std::string& of_switch);

/// kInvalidArgument where it cannot be a phase of the cluster: for its name, for links of ranks
/// that there are not, or for want of ports.
[[nodiscard]] PCCL_API Status check_phase(const Description& description, const Phase& phase);

/// kInvalidArgument where these circuits are not the phase: on every optical switch together they
/// carry exactly the links that circuits_of() has there, over whatever ports of the two ranks; what
/// electrical ones have is up to circuits_of().
[[nodiscard]] PCCL_API Status check_circuits(const Description& description, const Phase& phase,
                                             const CircuitsBySwitch& circuits);

}  // namespace pccl::cluster
