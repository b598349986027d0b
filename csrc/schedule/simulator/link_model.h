// SPDX-License-Identifier: Apache-2.0

// Link model: cost of rounds, messages and bytes for each rank, and of the links that the ranks of
// a host share.
#pragma once

#include <cstddef>
#include <string>

#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"
#include "csrc/topo/job/job_links.h"

namespace pccl::schedule {

struct LinkCost {
    double round_seconds = 0;     // from a send to its receiver's next send, on an idle network
    double message_seconds = 0;   // a rank's time per message that it sends or receives
    double seconds_per_byte = 0;  // a rank's time for sending or receiving
    /// The rank itself copies: it sends and receives in turn, not at the same time.
    bool copies = false;
};

struct LinkModel {
    LinkCost near;  // between ranks of a host
    LinkCost far;   // between hosts
    double reduce_seconds_per_byte = 0;
    std::size_t capacity = 0;  // bytes that every channel of every link holds
};

/// Link usage of a schedule's messages, for a block of one byte.
struct Traffic {
    double far_share = 0;               // share of the messages that cross between hosts
    int far_peers = 0;                  // most ranks on other hosts to which one rank sends
    double seconds_per_byte = 0;        // maximum over ranks, sending or receiving
    topo::JobLinks::Busiest busiest{};  // busiest link that the ranks of a host share
    std::string busiest_name{};         // empty: no link is crossed
};

/// Computes the traffic from the programs of the ranks of one host, and of more hosts while
/// programs are short. `order` lists the ranks for sources that follow orders.
[[nodiscard]] Traffic traffic(const ScheduleSource& source, const Shape& shape,
                              const LinkModel& model, const topo::JobLinks& links,
                              const RankOrder& order);

/// Returns the cost of `windows` runs of a schedule, each over a part of its blocks. A window
/// begins when the previous one has ended, except on ranks that are ahead.
[[nodiscard]] Cost in_windows(Cost cost, long long windows);

/// Returns seconds, for blocks of `bytes`.
[[nodiscard]] double predict(const LinkModel& model, const Cost& cost, const Traffic& traffic,
                             double bytes);

}  // namespace pccl::schedule
