// How a make of switches spells circuits in NETCONF: data, not code.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/circuits.h"
#include "csrc/sys/xml/xml_reader.h"

namespace pccl::cluster {

/// A list of circuits within containers. In `key` and `content`, {in} and {out} stand for ports.
struct Dialect {
    using Path = std::span<const std::string_view>;

    std::string_view name;
    std::string_view name_space;
    Path containers;  // from the root of the configuration inwards
    std::string_view entry;
    std::string_view key;      // what names an entry that is to be deleted
    std::string_view content;  // of an entry that is to be there
    Path ingress;              // where they are in an entry
    Path egress;
};

/// Null for none of that name.
[[nodiscard]] PCCL_API const Dialect* find_dialect(std::string_view name);
/// "pccl, polatis, ..."
[[nodiscard]] PCCL_API std::string dialect_names();

/// The configuration of an <edit-config> that deletes and merges entries; nc: is NETCONF's prefix.
[[nodiscard]] PCCL_API std::string edit_xml(const Dialect& dialect, const Circuits& remove,
                                            const Circuits& add);
/// The subtree filter that selects the list.
[[nodiscard]] PCCL_API std::string filter_xml(const Dialect& dialect);
/// The circuits in the <data> of a reply. kPeerLost where they make no sense.
[[nodiscard]] PCCL_API Result<Circuits> circuits_in(const Dialect& dialect,
                                                    const sys::XmlElement& reply);

}  // namespace pccl::cluster
