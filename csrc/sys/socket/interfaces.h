// SPDX-License-Identifier: Apache-2.0

// Network interfaces of this host, and the choice among them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

/// One address of one interface; an interface with several addresses has several entries.
struct Interface {
    std::string name;
    unsigned index = 0;
    Address address;      // port 0; link-local IPv6 with its scope
    int prefix_bits = 0;  // of its subnet
    bool enabled = true;  // by the administrator; running also means that its cable has a signal
    bool running = false;
    bool loopback = false;
    /// A bridge, or a device without a wire: it leads to containers of this host.
    bool internal = false;
    /// The kernel sends packets to unknown hosts from this address.
    bool has_default_route = false;

    friend bool operator==(const Interface&, const Interface&) = default;
};

/// Returns IPv4 and IPv6 addresses in the kernel's order, of all interfaces, up or not.
[[nodiscard]] PCCL_API Result<std::vector<Interface>> list_interfaces();

/// Returns "10.0.0.0/24".
[[nodiscard]] PCCL_API std::string subnet_of(const Interface& interface);

/// Returns the speed that the driver of an interface reports, also a virtual one; -1: unknown.
[[nodiscard]] PCCL_API int megabits_of(const std::string& interface);

/// Sets `internal` and `has_default_route` of each, which takes several system calls.
PCCL_API void examine_interfaces(std::span<Interface> interfaces);

/// Returns the addresses at which other hosts may reach this one, the best first, at most
/// kMostCandidates, by `spec` in the syntax of PCCL_SOCKET_IFNAME:
///   ""                     every interface except loopbacks, or the loopback if there is no other
///   "eth,ib"               names that start with "eth", then names that start with "ib"
///   "=eth0,eth1"           exactly these names
///   "^lo,docker"           names that start with none of these ("^=lo": other names than these)
///   "10.0.0.0/8,fd00::/8"  addresses inside one of these subnets
/// Only running interfaces count. Beyond `spec`, the order is: an interface with the default route
/// comes first; an internal one (unless it has the default route), a link-local address and the
/// loopback come last; IPv4 comes before IPv6. Link-local IPv6 addresses, which require an
/// interface, are left out where there are others. kInvalidArgument when `spec` cannot be read;
/// kUnavailable, with a list of the interfaces, when none matches.
[[nodiscard]] PCCL_API Result<std::vector<Interface>> candidate_interfaces(
    std::span<const Interface> interfaces, std::string_view spec);
inline constexpr std::size_t kMostCandidates = 8;

/// Returns the first of candidate_interfaces().
[[nodiscard]] PCCL_API Result<Interface> choose_interface(std::span<const Interface> interfaces,
                                                          std::string_view spec);

}  // namespace pccl::sys
