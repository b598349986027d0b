// What a program tells a switch by itself, outside of phases.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"

namespace pccl::cluster {

/// What one port is to be connected to from now on.
struct PCCL_API Command {
    enum class Kind {
        kCrossConnect,  // an optical switch: what comes in here goes out there
        kDisconnect,    // an optical switch: nowhere
        kJoinVlan,      // an electrical one with VLANs
        kEnable,        // an electrical one without
        kDisable,       // both of these
    };

    Kind kind = Kind::kDisconnect;
    int port = 0;  // of an optical switch, the ingress
    int to = 0;    // the egress, or the VLAN

    static Command cross_connect(int ingress, int egress);
    static Command disconnect(int ingress);
    static Command join_vlan(int port, int vlan);
    static Command enable(int port);
    static Command disable(int port);

    friend bool operator==(const Command&, const Command&) = default;
};

/// "cross-connect 1 -> 2"
[[nodiscard]] PCCL_API std::string to_string(const Command& command);

/// kInvalidArgument where a switch cannot be told this, with what would be right.
[[nodiscard]] Status check_command(const SwitchDescription& of, const Command& command);
/// What is connected once these were carried out, one after the other.
[[nodiscard]] Circuits with_commands(Circuits circuits, const std::vector<Command>& commands);

}  // namespace pccl::cluster
