// SPDX-License-Identifier: Apache-2.0

// Counters of the kernel about the path of a TCP connection (TCP_INFO).
#pragma once

#include <cstdint>
#include <string>

#include <pccl/deadline.h>
#include <pccl/export.h>

namespace pccl::sys {

struct PathCounters {
    std::uint64_t sent = 0;    // bytes that the peer's host has acknowledged
    std::uint64_t resent = 0;  // bytes that were sent again
    Duration round_trip{};     // smoothed; zero: none was measured yet
    Duration busy{};           // time in which data was in flight or waited to be
};

/// Counters of a connection, or of parallel ones by the same interface.
struct NetworkPath {
    std::string interface{};  // of this host; empty where none has the connection's address
    PathCounters counters{};
};

/// Adds the counters of a parallel connection: sums of bytes, and the longer times.
PCCL_API PathCounters& operator+=(PathCounters& sum, const PathCounters& more);

/// Returns the counters; zeros where `fd` is no TCP socket, or the kernel lacks them (before 4.19).
[[nodiscard]] PCCL_API PathCounters path_counters(int fd);

/// Answers of the peer's host to data.
struct PathAnswers {
    std::uint64_t acknowledged = 0;  // bytes
    bool has_in_flight = false;      // whether sent data waits for an answer
    /// How often in a row the kernel has sent data, or a probe for room, without an answer: more
    /// than one is a path that carries nothing, and not a peer that does not read.
    unsigned unanswered = 0;
    Duration round_trip{};  // smoothed
};

/// Returns the answers; zeros where `fd` is no TCP socket.
[[nodiscard]] PCCL_API PathAnswers path_answers(int fd);

/// Returns the bytes a second that the path delivered lately, as the kernel measures it; 0: it has
/// no measurement.
[[nodiscard]] PCCL_API std::uint64_t delivery_rate(int fd);

}  // namespace pccl::sys
