// SPDX-License-Identifier: Apache-2.0

// Route of a connection to another host, for error messages.
#pragma once

#include <string>
#include <string_view>

#include "csrc/sys/socket/address.h"

namespace pccl::transport {

/// Hint for choosing another route.
inline constexpr std::string_view kHowToChoose =
    " (PCCL_SOCKET_IFNAME, on the peer and here, names the interface to use)";

/// Returns ", through eth0": the interface of this host through which packets to an IP address
/// leave, or that has the address itself; empty for other addresses, and where the kernel does not
/// report it.
[[nodiscard]] std::string outgoing_route(const sys::Address& to);

}  // namespace pccl::transport
