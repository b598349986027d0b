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

    friend bool operator==(const Interface&, const Interface&) = default;
};

/// In the kernel's order: IPv4 and IPv6 addresses of interfaces that are up or not.
[[nodiscard]] PCCL_API Result<std::vector<Interface>> list_interfaces();

/// "10.0.0.0/24".
[[nodiscard]] PCCL_API std::string subnet_of(const Interface& interface);

/// What the driver of an interface says of its speed, virtual ones too; -1: nothing.
[[nodiscard]] PCCL_API int megabits_of(const std::string& interface);

/// The address to listen at, by `spec` in the syntax of PCCL_SOCKET_IFNAME:
///   ""                     the first interface that is no loopback, else the loopback
///   "eth,ib"               the first whose name starts with one of these, tried from left to right
///   "=eth0,eth1"           whose name is one of these
///   "^lo,docker"           the first whose name starts with none of these ("^=lo": is none of
///   these) "10.0.0.0/8,fd00::/8"  the first address inside one of these subnets
/// Only running interfaces count. Of an interface's addresses IPv4 comes first and link-local last.
/// kInvalidArgument when `spec` cannot be read; kUnavailable, listing what there is, when nothing
/// fits.
[[nodiscard]] PCCL_API Result<Interface> choose_interface(std::span<const Interface> interfaces,
                                                          std::string_view spec);

}  // namespace pccl::sys
