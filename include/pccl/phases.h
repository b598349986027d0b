// SPDX-License-Identifier: Apache-2.0

// Description of a network with phases: devices, the switches between them, and the links of each
// phase.
#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include <pccl/types.h>

namespace pccl::cluster {

/// Circuit from an ingress port to an egress port. The opposite direction is a separate circuit.
///
/// On an electrical switch it is a port with its VLAN, which connects all ports in it, or with 1 if
/// ports are only on or off.
struct Circuit {
    int ingress = 0;  // number of a port
    int egress = 0;   // number of a port, or a VLAN
    /// Compares the ingress first.
    friend auto operator<=>(const Circuit&, const Circuit&) = default;
};

/// Circuits of one switch in ascending order. No two have the same ingress or, on an optical
/// switch, the same egress.
using Circuits = std::vector<Circuit>;

/// Circuits of each switch, by name; contains every switch.
using CircuitsBySwitch = std::map<std::string, Circuits>;

/// Change from some circuits to others; common circuits are not touched.
struct PCCL_API Change {
    Circuits remove;  // circuits of the old state only
    Circuits add;     // circuits of the new state only

    /// Returns whether nothing changes.
    [[nodiscard]] bool is_empty() const { return remove.empty() && add.empty(); }
    /// Returns the removed circuits without those whose ingress gets another egress, for devices
    /// that replace circuits at once.
    [[nodiscard]] Circuits removed_for_good() const;
    /// Compares both lists.
    friend bool operator==(const Change&, const Change&) = default;
};

/// Returns "1->2, 2->1", or "none".
[[nodiscard]] PCCL_API std::string to_string(const Circuits& circuits);

/// Port of a switch, connected to a device's transmitter and receiver.
struct Port {
    std::string of_switch;  // name of the switch
    int number = 0;         // of the port there
    /// Compares switch and number.
    friend bool operator==(const Port&, const Port&) = default;
};

/// Device of one rank.
struct Device {
    std::string name;              // in messages
    Rank rank = 0;                 // of the process on it
    std::vector<Port> ports = {};  // in the order in which links take them
    /// Compares all members.
    friend bool operator==(const Device&, const Device&) = default;
};

/// Management address of a switch, the user, and the keys of both sides.
struct Management {
    std::string user;                   // name of the user there
    std::string host;                   // name or address
    std::uint16_t port = 830;           // of NETCONF over SSH
    std::string host_key;               // "SHA256:..."; empty only with accepts_any_host_key
    std::string key_file;               // path of the user's private key
    bool accepts_any_host_key = false;  // for tests: the switch is not authenticated
    /// Compares all members.
    friend bool operator==(const Management&, const Management&) = default;
};

/// Kind of a switch.
enum class SwitchKind {
    kOptical,  // circuits
    kVlans,    // electrical, with ports in VLANs
    kPorts,    // electrical, with ports on or off
};

/// Switch of a cluster.
struct SwitchDescription {
    std::string name;                          // unique in the cluster
    SwitchKind kind = SwitchKind::kOptical;    // what it connects
    std::string dialect = "pccl";              // YANG model of its NETCONF server
    bool is_in_process = true;                 // a fabric in this process, without management
    Management management;                     // unless it is in this process
    std::chrono::milliseconds settle{0};       // from a commit until light is stable
    std::chrono::seconds confirm_timeout{10};  // after which it reverts an unconfirmed commit
    /// Copies a change to the startup configuration, if the switch has a separate one.
    bool copies_to_startup = false;
    /// Electrical: the ports of devices. All other ports are ignored.
    std::vector<int> ports = {};
    /// Compares all members.
    friend bool operator==(const SwitchDescription&, const SwitchDescription&) = default;
};

/// Directed link from a rank's transmitter to another's receiver.
struct RankLink {
    Rank from = 0;  // sends
    Rank to = 0;    // receives
    /// Compares the sender first.
    friend auto operator<=>(const RankLink&, const RankLink&) = default;
};

/// Set of links that a network has at one time.
struct Phase {
    std::string name;  // unique in the cluster
    /// In the order of the file; the two links of a duplex pair are adjacent.
    std::vector<RankLink> links;
    bool forwards = false;  // ranks forward messages of others
    /// Compares all members.
    friend bool operator==(const Phase&, const Phase&) = default;
};

/// Content of a cluster file.
struct PCCL_API Description {
    std::vector<Device> devices;              // by rank, 0 to n - 1
    std::vector<SwitchDescription> switches;  // at least one
    std::vector<Phase> phases;                // those of the file, then those registered since
    std::string audit_file;                   // path of the audit log; empty: none

    /// Returns a phase by name; null if there is none.
    [[nodiscard]] const Phase* phase(std::string_view name) const;
    /// Returns a switch that must exist.
    [[nodiscard]] const SwitchDescription& switch_called(std::string_view name) const;
    /// Returns the names of all phases, in order.
    [[nodiscard]] std::vector<std::string_view> phase_names() const;
    /// Compares all members.
    friend bool operator==(const Description&, const Description&) = default;
};

/// Maps the circuits of all switches in one phase to those in another. It must be a pure function:
/// it is also called to recognise the circuits that switches show.
using Transform = std::function<Result<CircuitsBySwitch>(const CircuitsBySwitch& from)>;

/// Most links of all phases of a cluster.
inline constexpr std::size_t kMostLinks = std::size_t{1} << 20U;

/// Returns the links from each rank to the next, and from the last to rank 0; none for one rank.
[[nodiscard]] PCCL_API std::vector<RankLink> ring_of(int ranks);
/// Returns each link followed by its reverse, which uses the same two ports.
[[nodiscard]] PCCL_API std::vector<RankLink> both_ways(const std::vector<RankLink>& links);
/// Returns "0 -> 1, 1 -> 0", or "none".
[[nodiscard]] PCCL_API std::string to_string(const std::vector<RankLink>& links);

/// End of a switch of phases.
enum class Ending {
    kSwitched,
    kPrepared,    // all would have been switched: a dry run, or a commit has yet to come
    kRefused,     // nothing was changed
    kRolledBack,  // all switches are in their original state
    kDegraded,    // a switch is in neither state
};
/// Returns "switched", "prepared", ...
[[nodiscard]] PCCL_API std::string_view to_string(Ending ending);

}  // namespace pccl::cluster
