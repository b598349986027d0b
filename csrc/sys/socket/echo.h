// SPDX-License-Identifier: Apache-2.0

// Echoes over a stream socket, by which its two ends measure the time of a message.
//
// A request is kEchoBytes long. Its first eight bytes are a number in native byte order: the count
// of bytes that follow the request. The reply is the request itself, once all of them have arrived.
#pragma once

#include <cstddef>
#include <span>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/ids.h"

namespace pccl::sys {

inline constexpr std::size_t kEchoBytes = 64;
/// Most bytes behind a request.
inline constexpr std::size_t kMostEchoed = 1 * kMiB;

struct Echo {
    double sent = 0;      // seconds of the call that sends the request
    double answered = 0;  // seconds from the begin of that call to the reply
};

/// Sends a request with `bytes`, at most kMostEchoed. Polls for the reply before it sleeps, like
/// ranks that wait for a message. kTimeout; other errors as in socket.h.
[[nodiscard]] PCCL_API Result<Echo> request_echo(int fd, std::span<const std::byte> bytes,
                                                 Deadline deadline);

/// Answers requests until the other end closes (kPeerLost) or announces too many bytes
/// (kInvalidArgument); kTimeout.
[[nodiscard]] PCCL_API Status answer_echoes(int fd, Deadline deadline);

}  // namespace pccl::sys
