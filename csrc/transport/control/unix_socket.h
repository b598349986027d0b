// What all that listens within a host shares: fresh names to listen at, and who may come.
#pragma once

#include "csrc/base/status.h"
#include "csrc/sys/socket/address.h"

namespace pccl::transport {

/// An address in the abstract namespace that nobody can guess.
[[nodiscard]] Result<sys::Address> fresh_unix_address();

/// kUnavailable, naming both users, unless the process at the other end of `socket` runs as this
/// one's user.
[[nodiscard]] Status require_same_user(int socket);

}  // namespace pccl::transport
