// What messages cross between ranks, for the replay of schedules: links with a bandwidth each, and
// the way from each rank to each other.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "csrc/base/export.h"
#include "csrc/base/ids.h"

namespace pccl::schedule {

/// A message takes so many times its bytes of a link.
struct Crossing {
    int link = 0;
    double times = 1;
};

/// A message occupies its sender for `start_seconds`, crosses all links at once, and arrives
/// `travel_seconds` after its last byte has left.
struct Route {
    double start_seconds = 0;
    double travel_seconds = 0;
    std::vector<Crossing> way;
    double start_bytes = 0;  // that it takes of its way besides those that it carries
};

/// Where ranks take turns on what they compute with.
struct SharedSums {
    std::function<std::vector<Crossing>(Rank)> way;  // of what a rank adds up
    double bytes_per_byte = 0;                       // of its way, for one that is added
};

struct Network {
    int ranks = 1;
    std::vector<double> bandwidth;  // by link: bytes a second
    std::function<Route(Rank from, Rank to)> route;
    std::function<std::string(int link)> name;
    double reduce_seconds_per_byte = 0;  // of a rank alone; besides, where others wait for it:
    SharedSums sums{};
    /// Of a rank's time, in bytes of its way, for each run of chunks of a message but the first:
    /// sent, it is its message's; received, that of its sums.
    double bytes_per_run = 0;
    /// Of a receiver's time, in bytes of its way: for each message, and for each byte of it.
    double bytes_per_receipt = 0;
    double bytes_per_byte_taken = 0;
    /// Until a step is seen for which one of a later lane has made way: ranks look at their lanes
    /// in turn, and at a link for the next message of that one first.
    double look_seconds = 0;
    /// Bytes that the messages of a FIFO may have: of more data than that, a schedule runs over
    /// one window after the other. 0: any number.
    std::size_t capacity = 0;
    /// Turning all ranks by one maps the network onto itself: link k * ranks + i becomes link
    /// k * ranks + (i + 1) % ranks, which is as fast, and routes turn with the links.
    bool turns = false;
};

/// alpha, delta and 1 / beta of the literature.
struct LinkSpeed {
    double start_seconds = 0;
    double hop_seconds = 0;
    double bandwidth = 0;  // of a port, bytes a second
};

/// Circuits from each rank to the next, and with two ports to the one before it, too: messages to
/// others are forwarded, the shorter way round.
[[nodiscard]] PCCL_API Network ring_of_circuits(int ranks, int ports, const LinkSpeed& speed);

/// Every rank has one port out and one in, at a switch that never blocks: a hop from any to any.
[[nodiscard]] PCCL_API Network one_switch(int ranks, const LinkSpeed& speed);

/// Hosts with a switch for `ranks_per_host` ranks each, and one link out and in that all ranks of a
/// host share. `ranks` is a multiple of `ranks_per_host`.
[[nodiscard]] PCCL_API Network two_levels(int ranks, int ranks_per_host, const LinkSpeed& within,
                                          const LinkSpeed& across);

/// What a rank of a machine spends on messages to others of it.
struct MessageWork {
    double start_seconds = 0;     // of the sender's time
    double travel_seconds = 0;    // until it is there, nothing else going on
    double seconds_per_byte = 0;  // of the sender's time
    /// So much is of the receiver's as well, at the same time; else a rank sends while it receives,
    /// and takes what has come in its own time.
    bool takes_both = false;
    double sum_seconds_per_byte = 0;
    double run_seconds = 0;            // Network::bytes_per_run
    double receipt_seconds = 0;        // of the receiver's time, once it is there
    double take_seconds_per_byte = 0;  // the same, for each byte
    double look_seconds = 0;           // Network::look_seconds
    std::size_t capacity = 0;          // Network::capacity
};

/// Ranks that share the cores of a machine, through which all messages go: those of ranks that have
/// no core to themselves take turns.
[[nodiscard]] PCCL_API Network one_machine(int ranks, int cores, const MessageWork& work);

}  // namespace pccl::schedule
