// SPDX-License-Identifier: Apache-2.0

// Unix sockets within a host: fresh names to listen at, and the check of the peer's user.
#pragma once

#include <pccl/status.h>
#include "csrc/sys/socket/address.h"

namespace pccl::transport {

/// Returns an address in the abstract namespace that nobody can guess.
[[nodiscard]] Result<sys::Address> fresh_unix_address();

/// Returns kUnavailable, naming both users, unless the process at the other end of `socket` runs as
/// this one's user.
[[nodiscard]] Status require_same_user(int socket);

}  // namespace pccl::transport
