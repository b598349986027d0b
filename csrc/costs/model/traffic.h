// SPDX-License-Identifier: Apache-2.0

// Traffic of a schedule's messages over the links that the ranks of a host share, and the seconds
// that it takes by the link model.
#pragma once

#include <string>

#include "csrc/costs/model/link_model.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/source.h"
#include "csrc/topo/job/job_links.h"

namespace pccl::costs {

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
[[nodiscard]] Traffic traffic(const schedule::ScheduleSource& source, const schedule::Shape& shape,
                              const LinkModel& model, const topo::JobLinks& links,
                              const schedule::RankOrder& order);

/// Returns the cost of `windows` runs of a schedule, each over a part of its blocks. A window
/// begins when the previous one has ended, except on ranks that are ahead.
[[nodiscard]] schedule::Cost in_windows(schedule::Cost cost, long long windows);

/// Returns seconds, for blocks of `bytes`.
[[nodiscard]] double seconds_over_links(const LinkModel& model, const schedule::Cost& cost,
                                        const Traffic& traffic, double bytes);

}  // namespace pccl::costs
