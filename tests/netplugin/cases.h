// SPDX-License-Identifier: Apache-2.0

// Cases and measurements of the harness. Both processes call the same function.
#pragma once

#include <cstddef>
#include <vector>

#include "tests/netplugin/side.h"

namespace pccl::netplugin {

/// Prints the first device.
void properties(Side& side);
/// Moves messages up to `largest` bytes, one at a time.
void sizes(Side& side, std::size_t largest);
/// Uses as many requests as a communicator may have; the receiver posts late, so that they pile up.
void many_requests(Side& side);
/// Sends the messages of grouped receives in another order than that of their tags.
void grouped(Side& side);
/// The receiver leaves with receives that nobody answers; then the sender with what nobody takes.
void early_close(Side& side);

struct Exchange {
    std::vector<std::size_t> sizes;  // of messages
    std::size_t window = 8;          // requests in flight
    int hold_ms = 0;                 // before each message
};
/// Sends and receives in both directions at once. A sender writes to its memory when test() has
/// returned, and a receiver has more room than its message takes.
void exchange(Side& side, const Exchange& wanted);

struct Measurement {
    std::vector<std::size_t> sizes;  // of messages
    std::size_t bytes = 0;           // of all messages of one size
    std::size_t window = 8;          // requests in flight
};
/// Prints the half of a round trip of each size.
void measure_latency(Side& side, const Measurement& wanted);
/// Prints the throughput of messages from the sender.
void measure_throughput(Side& side, const Measurement& wanted);

/// Connects both ways as often as a process with `peers` peers does, moves a message over each
/// connection, and prints the resources of this process for them.
void count_resources(Side& side, std::size_t peers);

}  // namespace pccl::netplugin
