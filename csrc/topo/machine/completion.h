// What a machine's description leaves open, filled in: from the user's assumptions, else with the
// usual values, with a warning for each kind of thing that was made up.
#pragma once

#include <optional>

#include "csrc/base/status.h"
#include "csrc/topo/machine/machine.h"
#include "csrc/topo/machine/warning.h"

namespace pccl::topo {

/// What to assume where the description is silent.
struct Assumptions {
    std::optional<int> sm{};         // 10 x compute capability, 10 to 999
    std::optional<int> nvlinks{};    // of each GPU, to an NVSwitch, 0 to 1024
    std::optional<int> net_speed{};  // Mb/s of each port, at least 1
    bool peer_to_peer = true;        // false: GPUs reach each other through the CPU only
    bool multi_node_nvlink = false;  // the NVLinks of all hosts meet in one switch
};

/// kInvalidArgument for an assumption out of range.
[[nodiscard]] Status check(const Assumptions& assume);

/// Afterwards every GPU and port has the attributes that Graph reads, but for what sanity.h
/// repairs.
void complete(Machine& machine, const Assumptions& assume, Warnings& warnings);

}  // namespace pccl::topo
