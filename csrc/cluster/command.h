// SPDX-License-Identifier: Apache-2.0

// Checks and effects of commands to one switch.
#pragma once

#include <string>
#include <vector>

#include <pccl/cluster.h>
#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// Checks a command. kInvalidArgument: the switch does not support it; the message contains a valid
/// one.
[[nodiscard]] Status check_command(const SwitchDescription& of, const Command& command);
/// Returns the circuits after these commands, performed in order.
[[nodiscard]] Circuits with_commands(Circuits circuits, const std::vector<Command>& commands);

}  // namespace pccl::cluster
