// SPDX-License-Identifier: Apache-2.0

// Dialects of electrical switches, as data: the enabled ports, and the VLAN of each.
#pragma once

#include <array>
#include <string_view>

#include "csrc/cluster/drivers/dialect.h"

namespace pccl::cluster::dialects {

constexpr std::array<std::string_view, 1> kPorts = {"ports"};
constexpr std::array<std::string_view, 1> kNumber = {"number"};
constexpr std::array<std::string_view, 1> kVlan = {"vlan"};
constexpr std::array<std::string_view, 1> kInterfaces = {"interfaces"};
constexpr std::array<std::string_view, 1> kName = {"name"};
constexpr std::array<std::string_view, 1> kEnabled = {"enabled"};

/// PCCL's own module: csrc/cluster/yang/pccl-electrical-switch.yang. A port that is not listed is
/// off.
constexpr Dialect kPcclVlan{.name = "pccl-vlan",
                            .kind = SwitchKind::kVlans,
                            .name_space = "urn:pccl:yang:electrical-switch",
                            .containers = kPorts,
                            .entry = "port",
                            .key = "<number>{in}</number>",
                            .content = "<number>{in}</number><vlan>{out}</vlan>",
                            .ingress = kNumber,
                            .egress = kVlan};

/// RFC 8343: interfaces named by their ports' numbers, on or off.
constexpr Dialect kIetfInterfaces{
    .name = "ietf-interfaces",
    .kind = SwitchKind::kPorts,
    .name_space = "urn:ietf:params:xml:ns:yang:ietf-interfaces",
    .containers = kInterfaces,
    .entry = "interface",
    .key = "<name>{in}</name>",
    .content =
        "<name>{in}</name>"
        "<type xmlns:ianaift=\"urn:ietf:params:xml:ns:yang:iana-if-type\">"
        "ianaift:ethernetCsmacd</type><enabled>true</enabled>",
    .off = "<name>{in}</name><enabled>false</enabled>",
    .ingress = kName,
    .egress = kEnabled};

}  // namespace pccl::cluster::dialects
