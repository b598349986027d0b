// What a switch connects. An optical one: circuits, each from one port to another, one way. An
// electrical one: which ports are on, and in which VLAN.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "csrc/base/export.h"

namespace pccl::cluster {

/// What comes in at one port goes out at another. The way back is a circuit of its own.
///
/// Of an electrical switch: a port, and the VLAN it is in, by which it reaches all ports of that;
/// or 1, where the switch has ports on or off.
struct Circuit {
    int ingress = 0;
    int egress = 0;
    friend auto operator<=>(const Circuit&, const Circuit&) = default;
};

/// In ascending order; no port is the ingress of two, or, of an optical switch, the egress of two.
using Circuits = std::vector<Circuit>;

/// From some circuits to others; what is in both is not touched.
struct PCCL_API Change {
    Circuits remove;
    Circuits add;

    [[nodiscard]] bool is_empty() const { return remove.empty() && add.empty(); }
    /// Without circuits whose ingress gets another egress: for devices that replace them at once.
    [[nodiscard]] Circuits removed_for_good() const;
    friend bool operator==(const Change&, const Change&) = default;
};

[[nodiscard]] PCCL_API Change change_between(const Circuits& from, const Circuits& to);
/// Whether each of `circuits` is one of `from` or `to`: a change from one to the other, half done.
[[nodiscard]] PCCL_API bool is_between(const Circuits& circuits, const Circuits& from,
                                       const Circuits& to);
/// Why one switch cannot have all of these, which are in ascending order: "two circuits begin at
/// port 3"; empty where it can. `has_one_way_out`: it is an optical one.
[[nodiscard]] PCCL_API std::string conflict_in(const Circuits& circuits, bool has_one_way_out);
/// "1->2, 2->1"; "none".
[[nodiscard]] PCCL_API std::string to_string(const Circuits& circuits);

}  // namespace pccl::cluster
