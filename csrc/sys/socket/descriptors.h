// SPDX-License-Identifier: Apache-2.0

// Features of unix sockets: passing of open descriptors, and credentials of the peer.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

inline constexpr std::size_t kMostDescriptors = 96;

/// Sends `tag` with duplicates of up to kMostDescriptors descriptors; false when it would block.
/// The caller keeps its own descriptors.
[[nodiscard]] PCCL_API Result<bool> send_descriptors(int socket, std::byte tag,
                                                     std::span<const int> descriptors);

struct FdMessage {
    std::byte tag{};
    std::vector<UniqueFd> descriptors;
};
/// Receives the message of one send_descriptors(); nullopt until it arrives. kPeerLost when the
/// peer left or sent more than kMostDescriptors (all of which are closed).
[[nodiscard]] PCCL_API Result<std::optional<FdMessage>> receive_descriptors(int socket);

struct Credentials {
    pid_t pid = 0;
    uid_t uid = 0;
};
/// Returns the process that connected or listened, as the kernel recorded it then.
[[nodiscard]] PCCL_API Result<Credentials> peer_credentials(int socket);

}  // namespace pccl::sys
