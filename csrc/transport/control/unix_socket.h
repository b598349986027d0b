// SPDX-License-Identifier: Apache-2.0

// Unix sockets within a host: fresh names to listen at, the check of the peer's user, and passing
// of descriptors.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/address.h"
#include "csrc/sys/socket/descriptors.h"

namespace pccl::transport {

/// Returns an address in the abstract namespace that nobody can guess.
[[nodiscard]] Result<sys::Address> fresh_unix_address();

/// Returns kUnavailable, naming both users, unless the process at the other end of `socket` runs as
/// this one's user.
[[nodiscard]] Status require_same_user(int socket);

/// Sends duplicates of at most sys::kMostDescriptors descriptors. kTimeout when the socket stays
/// full.
Status send_fds(int socket, std::byte tag, std::span<const int> descriptors, Deadline deadline);

/// Tag that replaces an answer: the peer has no room for the descriptors.
inline constexpr std::byte kShortage{'!'};

/// Returns the descriptors of the next message, which must have `tag`. kPeerLost after a kShortage.
Result<std::vector<UniqueFd>> receive_fds(int socket, std::byte tag, Deadline deadline);
/// Returns the descriptors of the next message like receive_fds(), without waiting: nullopt when
/// there is no message yet.
Result<std::optional<sys::FdMessage>> next_fds(int socket, std::byte tag);

}  // namespace pccl::transport
