// What only unix sockets can do: pass open descriptors, and tell who is at the other end.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

inline constexpr std::size_t kMostDescriptors = 96;

/// Sends `tag` and duplicates of up to kMostDescriptors descriptors with it; false when it would
/// have to wait. The caller keeps its own.
[[nodiscard]] PCCL_API Result<bool> send_descriptors(int socket, std::byte tag,
                                                     std::span<const int> descriptors);

struct FdMessage {
    std::byte tag{};
    std::vector<UniqueFd> descriptors;
};
/// Takes what one send_descriptors() sent; nullopt until it comes. kPeerLost when the peer left, or
/// sent more than kMostDescriptors (none of which stays open).
[[nodiscard]] PCCL_API Result<std::optional<FdMessage>> receive_descriptors(int socket);

struct Credentials {
    pid_t pid = 0;
    uid_t uid = 0;
};
/// Of the process that connected or listened, as the kernel saw it then.
[[nodiscard]] PCCL_API Result<Credentials> peer_credentials(int socket);

}  // namespace pccl::sys
