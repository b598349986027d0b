// Echoes over a stream socket, by which its two ends find out what a message takes.
//
// A question is kEchoBytes long; its first eight bytes, a number in the order of this machine, say
// how many bytes follow it. The answer is the question itself, once all of them have come.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/base/clock.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"

namespace pccl::sys {

inline constexpr std::size_t kEchoBytes = 64;
/// Behind a question.
inline constexpr std::size_t kMostEchoed = 1 * kMiB;

struct Echo {
    double sent = 0;      // seconds of the call that sends the question
    double answered = 0;  // from its begin until the answer is there
};

/// Asks with `bytes`, at most kMostEchoed, behind the question. Looks for the answer before it
/// sleeps, as ranks do that wait for a message. kTimeout; else errors as of the calls in socket.h.
[[nodiscard]] PCCL_API Result<Echo> ask_echo(int fd, std::span<const std::byte> bytes,
                                             Deadline deadline);

/// Answers until the other end closes, which is kPeerLost, or asks with more than it may
/// (kInvalidArgument); kTimeout.
[[nodiscard]] PCCL_API Status answer_echoes(int fd, Deadline deadline);

}  // namespace pccl::sys
