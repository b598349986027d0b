// What moving bytes costs in a group: constants or measurements for its links within a host and
// between hosts, and what the topology says of the links that all messages of a host share.
#pragma once

#include <cstddef>
#include <string>

#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

struct LinkCost {
    double round_seconds = 0;     // from a send to its receiver's next send, nothing else going on
    double message_seconds = 0;   // of a rank's time for each message it sends or receives
    double seconds_per_byte = 0;  // of a rank's time, for sending or receiving
};

/// Bytes that a channel of a TCP link holds at least, also with the buffers that Linux grants to
/// processes without privileges.
inline constexpr std::size_t kTcpCapacity = 256 * kKiB;

struct LinkModel {
    LinkCost near;  // between ranks of a host
    LinkCost far;   // between hosts
    double reduce_seconds_per_byte = 0;
    std::size_t capacity = 0;  // bytes that every channel of every link holds
};

/// What an algorithm's messages cross, for a block of one byte.
struct Traffic {
    double far_share = 0;               // of the messages: between hosts
    double seconds_per_byte = 0;        // of the rank that spends most on sending or receiving
    topo::JobLinks::Busiest busiest{};  // of the links that the ranks of a host share
    std::string busiest_name{};         // empty: no link is crossed
};

/// How the ranks of a group reach each other.
struct Reach {
    int ranks = 1;
    bool is_on_one_host = false;  // all of them, and they may use its memory
    bool shares_memory = false;   // those of one host may use its memory
};
[[nodiscard]] Reach reach_of(const bootstrap::Roster& roster);

/// The same on every rank of a group.
[[nodiscard]] LinkModel link_model(const Reach& reach, const bootstrap::Layout& layout);

/// From the programs of the ranks of one host, and of more while they are short. Needs
/// Layout::links().
[[nodiscard]] Traffic traffic(const schedule::ScheduleSource& source, const schedule::Shape& shape,
                              const LinkModel& links, const bootstrap::Layout& layout);

/// Between ranks of one host, of which nothing else is known.
[[nodiscard]] double predict(const LinkModel& links, const schedule::Cost& cost);
/// For blocks of `bytes`.
[[nodiscard]] double predict(const LinkModel& links, const schedule::Cost& cost,
                             const Traffic& traffic, double bytes);

}  // namespace pccl::comm
