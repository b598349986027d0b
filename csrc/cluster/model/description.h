// What a cluster file says: devices, the switches between them, and phases.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/cluster/model/circuits.h"

namespace pccl::cluster {

/// A port of a switch, with a device's transmitter and receiver at its two sides.
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

/// Where a switch listens for whom, and how it proves itself.
struct Management {
    std::string user;
    std::string host;
    std::uint16_t port = 830;
    std::string host_key;  // "SHA256:..."; empty with accepts_any_host_key alone
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
    bool is_in_process = true;  // a fabric of this process, without any management
    Management management;
    std::chrono::milliseconds settle{0};
    std::chrono::seconds confirm_timeout{10};
    /// Has the switch start with what it was switched to, where that takes a copy.
    bool copies_to_startup = false;
    /// Of an electrical one: those of devices. What others of it do is nobody's business here.
    std::vector<int> ports = {};
    friend bool operator==(const SwitchDescription&, const SwitchDescription&) = default;
};

/// One way, from a rank's transmitter to another's receiver.
struct RankLink {
    Rank from = 0;
    Rank to = 0;
    friend auto operator<=>(const RankLink&, const RankLink&) = default;
};

struct Phase {
    std::string name;
    std::vector<RankLink>
        links;              // in the order of the file; those of a duplex pair follow each other
    bool forwards = false;  // ranks pass on what is not theirs
    friend bool operator==(const Phase&, const Phase&) = default;
};

/// The circuits of each switch, by its name; every switch is there.
using CircuitsBySwitch = std::map<std::string, Circuits>;

struct PCCL_API Description {
    std::vector<Device> devices;  // by rank, 0 to n - 1
    std::vector<SwitchDescription> switches;
    std::vector<Phase> phases;
    std::string audit_file;  // empty: none

    /// Null for none.
    [[nodiscard]] const Phase* phase(std::string_view name) const;
    /// One that there is.
    [[nodiscard]] const SwitchDescription& switch_called(std::string_view name) const;
    [[nodiscard]] std::vector<std::string_view> phase_names() const;
    friend bool operator==(const Description&, const Description&) = default;
};

/// Gives each link of the phase the first free port of its two ranks, of one switch; both links of
/// a duplex pair get the same. Ports of electrical switches are always free: those that links join
/// get a VLAN. kInvalidArgument names a link for which no port is left.
[[nodiscard]] PCCL_API Result<CircuitsBySwitch> circuits_of(const Description& description,
                                                            const Phase& phase);

}  // namespace pccl::cluster
