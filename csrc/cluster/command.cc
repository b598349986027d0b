// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/command.h"

#include <algorithm>

#include "csrc/base/text/text.h"

namespace pccl::cluster {
namespace {

using Kind = Command::Kind;

constexpr int kMostPorts = 65535;
constexpr int kMostVlans = 4094;  // IEEE 802.1Q

std::string_view takes(SwitchKind kind) {
    switch (kind) {
        case SwitchKind::kOptical:
            return "is optical: it takes cross_connect and disconnect";
        case SwitchKind::kVlans:
            return "has VLANs: it takes join_vlan and disable";
        case SwitchKind::kPorts:
            return "has ports on or off: it takes enable and disable";
    }
    return "takes nothing";
}

bool is_for(SwitchKind of, Kind kind) {
    switch (kind) {
        case Kind::kCrossConnect:
        case Kind::kDisconnect:
            return of == SwitchKind::kOptical;
        case Kind::kJoinVlan:
            return of == SwitchKind::kVlans;
        case Kind::kEnable:
            return of == SwitchKind::kPorts;
        case Kind::kDisable:
            return of != SwitchKind::kOptical;
    }
    return false;
}

bool is_known_port(const SwitchDescription& of, int port) {
    if (of.kind != SwitchKind::kOptical) return std::ranges::find(of.ports, port) != of.ports.end();
    return port >= 1 && port <= kMostPorts;
}

Status check_target(const Command& command) {
    if (command.kind == Kind::kCrossConnect && (command.to < 1 || command.to > kMostPorts))
        return Status::invalid_argument(
            concat("goes to port ", command.to, ": ports are 1 to ", kMostPorts));
    if (command.kind == Kind::kJoinVlan && (command.to < 1 || command.to > kMostVlans))
        return Status::invalid_argument(
            concat("goes to VLAN ", command.to, ": VLANs are 1 to ", kMostVlans));
    return Status::ok();
}

}  // namespace

Command Command::cross_connect(int ingress, int egress) {
    return {Kind::kCrossConnect, ingress, egress};
}
Command Command::disconnect(int ingress) { return {Kind::kDisconnect, ingress, 0}; }
Command Command::join_vlan(int port, int vlan) { return {Kind::kJoinVlan, port, vlan}; }
Command Command::enable(int port) { return {Kind::kEnable, port, 1}; }
Command Command::disable(int port) { return {Kind::kDisable, port, 0}; }

std::string to_string(const Command& command) {
    switch (command.kind) {
        case Kind::kCrossConnect:
            return concat("cross-connect ", command.port, " -> ", command.to);
        case Kind::kDisconnect:
            return concat("disconnect ", command.port);
        case Kind::kJoinVlan:
            return concat("port ", command.port, " to VLAN ", command.to);
        case Kind::kEnable:
            return concat("enable ", command.port);
        case Kind::kDisable:
            return concat("disable ", command.port);
    }
    return "unknown";
}

Status check_command(const SwitchDescription& of, const Command& command) {
    if (!is_for(of.kind, command.kind))
        return Status::invalid_argument(
            concat("does not accept ", to_string(command), ", as it ", takes(of.kind)));
    if (!is_known_port(of, command.port))
        return Status::invalid_argument(
            concat("does not accept ", to_string(command), ": ",
                   of.kind == SwitchKind::kOptical
                       ? concat("ports are 1 to ", kMostPorts)
                       : std::string("only ports of devices are looked at and changed")));
    return check_target(command).with_context(to_string(command));
}

Circuits with_commands(Circuits circuits, const std::vector<Command>& commands) {
    for (const Command& command : commands) {
        std::erase_if(circuits, [&](const Circuit& each) { return each.ingress == command.port; });
        if (command.to != 0) circuits.push_back({command.port, command.to});
    }
    std::ranges::sort(circuits);
    return circuits;
}

}  // namespace pccl::cluster
