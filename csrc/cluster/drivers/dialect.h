// How a make of switches spells what it connects in NETCONF: data, not code.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/circuits.h"
#include "csrc/cluster/model/description.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::cluster {

/// A list of circuits within containers. In `key`, `content` and `off`, {in} and {out} stand for
/// what a circuit has.
struct Dialect {
    using Path = std::span<const std::string_view>;

    std::string_view name;
    SwitchKind kind = SwitchKind::kOptical;
    std::string_view name_space;
    Path containers;  // from the root of the configuration inwards
    std::string_view entry;
    std::string_view key;        // what names an entry that is to be deleted
    std::string_view content;    // of an entry that is to be there
    std::string_view off = {};   // of one that is to connect nothing; empty: it is deleted
    Path ingress;                // where they are in an entry
    Path egress;                 // of kPorts: whether the port is on
    Path state = {};             // from the root of the state inwards; empty: it tells of no light
    std::string_view dark = {};  // leaves there: ingress ports of circuits without light

    [[nodiscard]] constexpr bool is_electrical() const { return kind != SwitchKind::kOptical; }
};

/// The configuration of an <edit-config> that deletes and merges entries; nc: is NETCONF's prefix.
[[nodiscard]] PCCL_API std::string edit_xml(const Dialect& dialect, const Circuits& remove,
                                            const Circuits& add);
/// The subtree filter that selects the list.
[[nodiscard]] PCCL_API std::string filter_xml(const Dialect& dialect);
/// The subtree filter that selects what it tells of light; empty: nothing.
[[nodiscard]] PCCL_API std::string light_filter_xml(const Dialect& dialect);
/// In ascending order, the ingress ports of circuits through which no light comes.
[[nodiscard]] PCCL_API std::vector<int> dark_in(const Dialect& dialect,
                                                const sys::XmlElement& reply);
/// The circuits in the <data> of a reply. kPeerLost where they make no sense.
[[nodiscard]] PCCL_API Result<Circuits> circuits_in(const Dialect& dialect,
                                                    const sys::XmlElement& reply);

}  // namespace pccl::cluster
