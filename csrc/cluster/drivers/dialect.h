// SPDX-License-Identifier: Apache-2.0

// NETCONF dialect of a switch vendor, as data instead of code.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::cluster {

/// Dialect for a list of circuits within containers. In `key`, `content` and `off`, {in} and {out}
/// are placeholders for the ports of a circuit.
struct Dialect {
    using Path = std::span<const std::string_view>;

    std::string_view name;
    SwitchKind kind = SwitchKind::kOptical;
    std::string_view name_space;
    Path containers;  // from the root of the configuration inwards
    std::string_view entry;
    std::string_view key;        // identifies an entry to delete
    std::string_view content;    // content of an entry to create
    std::string_view off = {};   // content of a disconnected entry; empty: the entry is deleted
    Path ingress;                // path of the ingress in an entry
    Path egress;                 // kPorts: whether the port is on
    Path state = {};             // from the root of the state inwards; empty: no light status
    std::string_view dark = {};  // leaf name there: ingress ports of circuits without light

    [[nodiscard]] constexpr bool is_electrical() const { return kind != SwitchKind::kOptical; }
};

/// Returns the configuration of an <edit-config> that deletes and merges entries; nc: is NETCONF's
/// prefix.
[[nodiscard]] PCCL_API std::string edit_xml(const Dialect& dialect, const Circuits& remove,
                                            const Circuits& add);
/// Returns the subtree filter that selects the list.
[[nodiscard]] PCCL_API std::string filter_xml(const Dialect& dialect);
/// Returns the subtree filter that selects the light status; empty: there is none.
[[nodiscard]] PCCL_API std::string light_filter_xml(const Dialect& dialect);
/// Returns the ingress ports of circuits without light, in ascending order.
[[nodiscard]] PCCL_API std::vector<int> dark_in(const Dialect& dialect,
                                                const sys::XmlElement& reply);
/// Returns the circuits in the <data> of a reply. kPeerLost: they are inconsistent.
[[nodiscard]] PCCL_API Result<Circuits> circuits_in(const Dialect& dialect,
                                                    const sys::XmlElement& reply);

}  // namespace pccl::cluster
