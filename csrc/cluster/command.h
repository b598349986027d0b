// SPDX-License-Identifier: Apache-2.0

// Commands to one switch, outside of phases.
#pragma once

#include <string>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// New connection of one port.
struct PCCL_API Command {
    enum class Kind {
        kCrossConnect,  // optical: connects ingress `port` to egress `to`
        kDisconnect,    // optical: disconnects the port
        kJoinVlan,      // electrical, with VLANs
        kEnable,        // electrical, without VLANs
        kDisable,       // electrical, both kinds
    };

    Kind kind = Kind::kDisconnect;
    int port = 0;  // optical: the ingress
    int to = 0;    // egress or VLAN

    static Command cross_connect(int ingress, int egress);
    static Command disconnect(int ingress);
    static Command join_vlan(int port, int vlan);
    static Command enable(int port);
    static Command disable(int port);

    friend bool operator==(const Command&, const Command&) = default;
};

/// Returns "cross-connect 1 -> 2".
[[nodiscard]] PCCL_API std::string to_string(const Command& command);

/// Checks a command. kInvalidArgument: the switch does not support it; the message contains a valid
/// one.
[[nodiscard]] Status check_command(const SwitchDescription& of, const Command& command);
/// Returns the circuits after these commands, performed in order.
[[nodiscard]] Circuits with_commands(Circuits circuits, const std::vector<Command>& commands);

}  // namespace pccl::cluster
