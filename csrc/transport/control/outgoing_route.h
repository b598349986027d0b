// What an error about a connection to another host tells of the route that it took.
#pragma once

#include <string>
#include <string_view>

#include "csrc/sys/socket/address.h"

namespace pccl::transport {

/// What chooses another route.
inline constexpr std::string_view kHowToChoose =
    " (PCCL_SOCKET_IFNAME, on the peer and here, names the interface to use)";

/// Returns ", through eth0": the interface of this host through which packets to an IP address
/// leave, or that has the address itself; empty for other addresses, and where the kernel does not
/// say.
[[nodiscard]] std::string outgoing_route(const sys::Address& to);

}  // namespace pccl::transport
