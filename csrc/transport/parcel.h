// Descriptors over unix sockets, for callers that may wait.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::transport {

/// Sends duplicates of at most sys::kMostDescriptors descriptors. kTimeout when the socket stays
/// full.
Status send_parcel(int socket, std::byte tag, std::span<const int> descriptors, Deadline deadline);

/// In place of an answer: the peer has no room for the descriptors.
inline constexpr std::byte kShortage{'!'};

/// The descriptors of the next parcel, which must bear `tag`. kPeerLost after a kShortage.
Result<std::vector<UniqueFd>> receive_parcel(int socket, std::byte tag, Deadline deadline);

}  // namespace pccl::transport
