// By which interface the kernel's routing tables lead to an address.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/sys/socket/address.h"

namespace pccl::sys {

/// The name of the interface by which packets to `to`, an IP address, would leave now. kUnavailable
/// says why there is no route.
[[nodiscard]] PCCL_API Result<std::string> route_device(const Address& to);

}  // namespace pccl::sys
