// SPDX-License-Identifier: Apache-2.0

// Query of a process's state, on a connection of its own: authenticated like every other, one
// answer, then closed. The acceptor thread answers, independently of the process's user.
#pragma once

#include <string>
#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

/// Limit of an answer in bytes.
inline constexpr std::size_t kLongestAnswer = 8 * kKiB;

/// Sends a query and returns the answer. Errors are those of connect_authenticated(), and kPeerLost
/// where the answer is cut short.
[[nodiscard]] PCCL_API Result<std::string> inquire(const ConnectArgs& args,
                                                   const Introduction& introduction,
                                                   Deadline deadline);

/// Answers at the other end, on an authenticated socket; does not block. `text` is cut at
/// kLongestAnswer.
PCCL_API void answer(int socket, std::string_view text);

}  // namespace pccl::transport
