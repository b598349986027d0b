// SPDX-License-Identifier: Apache-2.0

// Network model for the replay of schedules: links with a bandwidth each, and routes between ranks.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <pccl/export.h>
#include "csrc/base/ids.h"

namespace pccl::schedule {

/// Use of a link by a message: `times` its bytes.
struct Crossing {
    int link = 0;
    double times = 1;
};

/// Route of a message: it occupies its sender for `start_seconds`, crosses all links at once, and
/// arrives `travel_seconds` after its last byte has left.
struct MessageRoute {
    double start_seconds = 0;
    double travel_seconds = 0;
    std::vector<Crossing> way;
    double start_bytes = 0;  // bytes that it occupies of its route besides its payload
};

/// Shared compute resource on which ranks take turns.
struct SharedSums {
    std::function<std::vector<Crossing>(Rank)> way;  // links that a rank's reductions use
    double bytes_per_byte = 0;                       // bytes on these links per reduced byte
};

struct SimulatedNetwork {
    int ranks = 1;
    std::vector<double> bandwidth;  // by link: bytes per second
    std::function<MessageRoute(Rank from, Rank to)> route;
    std::function<std::string(int link)> name;
    double reduce_seconds_per_byte = 0;  // a rank's own time; shared costs: `sums`
    SharedSums sums{};
    /// A rank's time, in bytes of its route, for each run of chunks of a message after the first:
    /// part of the message when sent, part of the reduction when received.
    double bytes_per_run = 0;
    /// A receiver's time, in bytes of its route: for each message, and for each byte.
    double bytes_per_receipt = 0;
    double bytes_per_byte_taken = 0;
    /// Delay before a step starts after a step of a later lane has released it: ranks poll their
    /// lanes in turn, and first look for that lane's next message.
    double look_seconds = 0;
    /// Maximum bytes of the messages in a FIFO. A schedule of more data runs in consecutive
    /// windows. 0: no limit.
    std::size_t capacity = 0;
    /// Rotating all ranks by one maps the network onto itself: link k * ranks + i becomes link k *
    /// ranks + (i + 1) % ranks, which has the same bandwidth, and routes rotate with the links.
    bool turns = false;
};

/// alpha, delta and 1 / beta of the literature.
struct LinkSpeed {
    double start_seconds = 0;
    double hop_seconds = 0;
    double bandwidth = 0;  // of a port, bytes per second
};

/// Returns a ring of circuits from each rank to the next and, with two ports, also to the previous
/// one. Other messages are forwarded along the shorter direction.
[[nodiscard]] PCCL_API SimulatedNetwork ring_of_circuits(int ranks, int ports,
                                                         const LinkSpeed& speed);

/// Returns a network in which every rank has one port out and one in at a non-blocking switch: one
/// hop between any two ranks.
[[nodiscard]] PCCL_API SimulatedNetwork one_switch(int ranks, const LinkSpeed& speed);

/// Returns hosts with a switch for `ranks_per_host` ranks each, and one link out and one in that
/// all ranks of a host share. `ranks` is a multiple of `ranks_per_host`.
[[nodiscard]] PCCL_API SimulatedNetwork two_levels(int ranks, int ranks_per_host,
                                                   const LinkSpeed& within,
                                                   const LinkSpeed& across);

/// Work of a rank for messages to other ranks of its machine.
struct MessageWork {
    double start_seconds = 0;     // sender's time
    double travel_seconds = 0;    // until arrival, on an idle machine
    double seconds_per_byte = 0;  // sender's time
    /// The receiver spends the same time simultaneously. If false, a rank sends while it receives,
    /// and takes received data in its own time.
    bool takes_both = false;
    double sum_seconds_per_byte = 0;
    double run_seconds = 0;            // SimulatedNetwork::bytes_per_run
    double receipt_seconds = 0;        // receiver's time per message, after arrival
    double take_seconds_per_byte = 0;  // receiver's time per byte, after arrival
    double look_seconds = 0;           // SimulatedNetwork::look_seconds
    std::size_t capacity = 0;          // SimulatedNetwork::capacity
};

/// Returns a network of ranks that share the cores of a machine, through which all messages go.
/// Ranks without a core of their own take turns.
[[nodiscard]] PCCL_API SimulatedNetwork one_machine(int ranks, int cores, const MessageWork& work);

}  // namespace pccl::schedule
