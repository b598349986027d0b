// SPDX-License-Identifier: Apache-2.0

// Interface and source address that the kernel's routing tables select for an address.
#pragma once

#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

/// Returns the name of the interface by which packets to `to`, an IP address, would leave now.
/// kUnavailable contains the reason why there is no route.
[[nodiscard]] PCCL_API Result<std::string> route_device(const Address& to);

/// Returns the address of this host (port 0) from which a connection to `to` would start now, by
/// all rules of the kernel's routing. Sends nothing. kUnavailable contains the reason why there is
/// no route.
[[nodiscard]] PCCL_API Result<Address> route_source(const Address& to);

/// Returns the addresses of this host, without loopbacks, from which connections to the host of
/// that name or address would start; empty where it cannot be resolved. May block on the network.
[[nodiscard]] PCCL_API std::vector<Address> sources_toward(const std::string& host);

}  // namespace pccl::sys
