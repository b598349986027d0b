// The network interfaces of this host, and which one a job uses.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

/// One address of one interface; an interface with several addresses appears several times.
struct Interface {
    std::string name;
    unsigned index = 0;
    Address address;      // port 0; link-local IPv6 with its scope
    int prefix_bits = 0;  // of its subnet
    bool enabled = true;  // by the administrator; running means that its cable has a signal, too
    bool running = false;
    bool loopback = false;
    /// A bridge, or a device without a wire: it leads to containers of this host.
    bool internal = false;
    /// The kernel sends packets to unknown hosts from this address.
    bool has_default_route = false;

    friend bool operator==(const Interface&, const Interface&) = default;
};

/// In the kernel's order: IPv4 and IPv6 addresses of interfaces that are up or not.
[[nodiscard]] PCCL_API Result<std::vector<Interface>> list_interfaces();

/// "10.0.0.0/24".
[[nodiscard]] PCCL_API std::string subnet_of(const Interface& interface);

/// What the driver of an interface says of its speed, virtual ones too; -1: nothing.
[[nodiscard]] PCCL_API int megabits_of(const std::string& interface);

/// Sets `internal` and `has_default_route` of each, which takes several system calls.
PCCL_API void examine_interfaces(std::span<Interface> interfaces);

/// Returns the addresses at which other hosts may reach this one, the best first, at most
/// kMostCandidates, by `spec` in the syntax of PCCL_SOCKET_IFNAME:
///   ""                     every interface that is no loopback, else the loopback
///   "eth,ib"               those whose names start with "eth", then those that start with "ib"
///   "=eth0,eth1"           whose name is one of these
///   "^lo,docker"           whose names start with none of these ("^=lo": are none of these)
///   "10.0.0.0/8,fd00::/8"  the addresses inside one of these subnets
/// Only running interfaces count. What `spec` leaves open is ordered: an interface with the default
/// route comes first; an internal one (unless it has the default route), a link-local address and
/// the loopback come last; IPv4 comes before IPv6. Link-local IPv6 addresses, which mean nothing
/// without an interface, are left out where there are others. kInvalidArgument when `spec` cannot
/// be read; kUnavailable, listing what there is, when nothing fits.
[[nodiscard]] PCCL_API Result<std::vector<Interface>> candidate_interfaces(
    std::span<const Interface> interfaces, std::string_view spec);
inline constexpr std::size_t kMostCandidates = 8;

/// Returns the first of candidate_interfaces().
[[nodiscard]] PCCL_API Result<Interface> choose_interface(std::span<const Interface> interfaces,
                                                          std::string_view spec);

}  // namespace pccl::sys
