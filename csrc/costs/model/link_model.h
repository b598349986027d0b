// SPDX-License-Identifier: Apache-2.0

// Link model: cost of rounds, messages and bytes on a group's links, within a host and between
// hosts. It is measured by `pccl topo --measure` on the hosts, or else derived from the costs of
// rank 0's machine.
#pragma once

#include <cstddef>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/costs/machine_costs.h"

namespace pccl::costs {

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

/// Minimum capacity in bytes of a channel of a TCP link, also with the buffers that Linux grants to
/// unprivileged processes: a power of two for data, plus the header of its call.
inline constexpr std::size_t kTcpCapacity = 257 * kKiB;

/// Reachability between the ranks of a group.
struct Reach {
    int ranks = 1;
    bool is_on_one_host = false;  // all ranks, with access to shared memory
    bool shares_memory = false;   // ranks of one host have access to shared memory
    int most_on_a_host = 1;       // maximum number of ranks on one host
    int ranks_on_core = 1;        // maximum number of ranks that share one core
};
[[nodiscard]] Reach reach_of(const bootstrap::Roster& roster, const MachineCosts& costs);

/// Returns the cache level of two rings of `bytes` bytes, one in each direction: in the caches of
/// both ends.
[[nodiscard]] Level level_of_rings(std::size_t bytes, const MachineCosts& costs);

/// Returns the model of the links; equal on all ranks of a group.
[[nodiscard]] LinkModel link_model(const Reach& reach, const bootstrap::Layout& layout,
                                   const MachineCosts& costs);

/// Returns the properties that predictions are based on.
[[nodiscard]] bootstrap::LinksCountedOn counted_on(const bootstrap::Layout& layout,
                                                   const MachineCosts& costs);

}  // namespace pccl::costs
