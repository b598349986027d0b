// SPDX-License-Identifier: Apache-2.0

// Content of a cluster file: devices, the switches between them, and phases.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

/// Port of a switch, connected to a device's transmitter and receiver.
struct Port {
    std::string of_switch;
    int number = 0;
    friend bool operator==(const Port&, const Port&) = default;
};

struct Device {
    std::string name;
    Rank rank = 0;
    std::vector<Port> ports = {};
    friend bool operator==(const Device&, const Device&) = default;
};

/// Management address of a switch, the user, and the keys of both sides.
struct Management {
    std::string user;
    std::string host;
    std::uint16_t port = 830;
    std::string host_key;  // "SHA256:..."; empty only with accepts_any_host_key
    std::string key_file;
    bool accepts_any_host_key = false;
    friend bool operator==(const Management&, const Management&) = default;
};

enum class SwitchKind {
    kOptical,  // circuits
    kVlans,    // electrical, with ports in VLANs
    kPorts,    // electrical, with ports on or off
};

struct SwitchDescription {
    std::string name;
    SwitchKind kind = SwitchKind::kOptical;
    std::string dialect = "pccl";
    bool is_in_process = true;  // a fabric in this process, without management
    Management management;
    std::chrono::milliseconds settle{0};
    std::chrono::seconds confirm_timeout{10};
    /// Copies a change to the startup configuration, if the switch has a separate one.
    bool copies_to_startup = false;
    /// Electrical: the ports of devices. All other ports are ignored.
    std::vector<int> ports = {};
    friend bool operator==(const SwitchDescription&, const SwitchDescription&) = default;
};

/// Directed link from a rank's transmitter to another's receiver.
struct RankLink {
    Rank from = 0;
    Rank to = 0;
    friend auto operator<=>(const RankLink&, const RankLink&) = default;
};

struct Phase {
    std::string name;
    std::vector<RankLink>
        links;              // in the order of the file; the two links of a duplex pair are adjacent
    bool forwards = false;  // ranks forward messages of others
    friend bool operator==(const Phase&, const Phase&) = default;
};

/// Circuits of each switch, by name; contains every switch.
using CircuitsBySwitch = std::map<std::string, Circuits>;

struct PCCL_API Description {
    std::vector<Device> devices;  // by rank, 0 to n - 1
    std::vector<SwitchDescription> switches;
    std::vector<Phase> phases;
    std::string audit_file;  // empty: none

    /// Returns null if there is none.
    [[nodiscard]] const Phase* phase(std::string_view name) const;
    /// Returns a switch that must exist.
    [[nodiscard]] const SwitchDescription& switch_called(std::string_view name) const;
    [[nodiscard]] std::vector<std::string_view> phase_names() const;
    friend bool operator==(const Description&, const Description&) = default;
};

/// Assigns to each link of the phase the first free port of its two ranks on one switch; both links
/// of a duplex pair get the same ports. Ports of electrical switches are always free: ports that
/// links join get a common VLAN. kInvalidArgument contains a link for which no port is left.
[[nodiscard]] PCCL_API Result<CircuitsBySwitch> circuits_of(const Description& description,
                                                            const Phase& phase);

}  // namespace pccl::cluster
