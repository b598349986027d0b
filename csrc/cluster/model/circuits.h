// SPDX-License-Identifier: Apache-2.0

// Connections of a switch. Optical: directed circuits from one port to another. Electrical: the
// enabled ports and their VLANs.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include <pccl/export.h>

namespace pccl::cluster {

/// Circuit from an ingress port to an egress port. The opposite direction is a separate circuit.
///
/// On an electrical switch it is a port with its VLAN, which connects all ports in it, or with 1 if
/// ports are only on or off.
struct Circuit {
    int ingress = 0;
    int egress = 0;
    friend auto operator<=>(const Circuit&, const Circuit&) = default;
};

/// In ascending order. No two have the same ingress or, on an optical switch, the same egress.
using Circuits = std::vector<Circuit>;

/// Change from some circuits to others; common circuits are not touched.
struct PCCL_API Change {
    Circuits remove;
    Circuits add;

    [[nodiscard]] bool is_empty() const { return remove.empty() && add.empty(); }
    /// Returns the removed circuits without those whose ingress gets another egress, for devices
    /// that replace circuits at once.
    [[nodiscard]] Circuits removed_for_good() const;
    friend bool operator==(const Change&, const Change&) = default;
};

[[nodiscard]] PCCL_API Change change_between(const Circuits& from, const Circuits& to);
/// Returns whether each of `circuits` is in `from` or `to`: the state of a half-done change.
[[nodiscard]] PCCL_API bool is_between(const Circuits& circuits, const Circuits& from,
                                       const Circuits& to);
/// Returns the reason why one switch cannot have all of these circuits, which are in ascending
/// order: "two circuits begin at port 3"; empty if it can. `has_one_way_out`: the switch is
/// optical.
[[nodiscard]] PCCL_API std::string conflict_in(const Circuits& circuits, bool has_one_way_out);
/// Returns "1->2, 2->1", or "none".
[[nodiscard]] PCCL_API std::string to_string(const Circuits& circuits);

}  // namespace pccl::cluster
