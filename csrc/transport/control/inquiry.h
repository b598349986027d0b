// Asking a process how it fares, on a connection of its own: proven like every other, one answer,
// then closed. The acceptor thread answers, so that a process answers whatever its user does.
#pragma once

#include <string>
#include <string_view>

#include "csrc/transport/control/handshake.h"

namespace pccl::transport {

/// Bytes of an answer.
inline constexpr std::size_t kLongestAnswer = 8 * kKiB;

/// Errors are those of connect_authenticated(), and kPeerLost where the answer is cut short.
[[nodiscard]] PCCL_API Result<std::string> inquire(const ConnectArgs& args,
                                                   const Introduction& introduction,
                                                   Deadline deadline);

/// The other end, on a proven socket; does not block. `text` is cut at kLongestAnswer.
PCCL_API void answer(int socket, std::string_view text);

}  // namespace pccl::transport
