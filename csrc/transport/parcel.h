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

/// The descriptors of the next parcel, which must bear `tag`.
Result<std::vector<UniqueFd>> receive_parcel(int socket, std::byte tag, Deadline deadline);

}  // namespace pccl::transport
