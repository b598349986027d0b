// What a schedule takes on the links of a job: rounds, messages and bytes of each rank, and what
// all ranks of a host together send through the links that they share.
#pragma once

#include <cstddef>
#include <string>

#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"
#include "csrc/topo/job/job_links.h"

namespace pccl::schedule {

struct LinkCost {
    double round_seconds = 0;     // from a send to its receiver's next send, nothing else going on
    double message_seconds = 0;   // of a rank's time for each message it sends or receives
    double seconds_per_byte = 0;  // of a rank's time, for sending or receiving
    /// The rank itself copies: it sends and receives in turn, and not at a time.
    bool copies = false;
};

struct LinkModel {
    LinkCost near;  // between ranks of a host
    LinkCost far;   // between hosts
    double reduce_seconds_per_byte = 0;
    std::size_t capacity = 0;  // bytes that every channel of every link holds
};

/// What a schedule's messages cross, for a block of one byte.
struct Traffic {
    double far_share = 0;               // of the messages: between hosts
    int far_peers = 0;                  // of the rank that sends to most ranks of other hosts
    double seconds_per_byte = 0;        // of the rank that spends most on sending or receiving
    topo::JobLinks::Busiest busiest{};  // of the links that the ranks of a host share
    std::string busiest_name{};         // empty: no link is crossed
};

/// From the programs of the ranks of one host, and of more while they are short. `order` lists the
/// ranks as schedules that follow it have them.
[[nodiscard]] Traffic traffic(const ScheduleSource& source, const Shape& shape,
                              const LinkModel& model, const topo::JobLinks& links,
                              const RankOrder& order);

/// What a schedule costs that runs `windows` times, each time over a part of its blocks: a window
/// begins when the one before it has ended, but for ranks that are ahead of others.
[[nodiscard]] Cost in_windows(Cost cost, long long windows);

/// Seconds, for blocks of `bytes`.
[[nodiscard]] double predict(const LinkModel& model, const Cost& cost, const Traffic& traffic,
                             double bytes);

}  // namespace pccl::schedule
