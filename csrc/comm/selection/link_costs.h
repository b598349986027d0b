// SPDX-License-Identifier: Apache-2.0

// Costs of a group's links, within a host and between hosts: measured by `pccl topo --measure` on
// its hosts, or else derived from the costs of rank 0's machine.
#pragma once

#include <cstddef>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/schedule/simulator/link_model.h"

namespace pccl::comm {

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
[[nodiscard]] Reach reach_of(const bootstrap::Roster& roster, const costs::MachineCosts& costs);

/// Returns the cache level of two rings of `bytes` bytes, one in each direction: in the caches of
/// both ends.
[[nodiscard]] costs::Level level_of_rings(std::size_t bytes, const costs::MachineCosts& costs);

/// Returns the model of the links; equal on all ranks of a group.
[[nodiscard]] schedule::LinkModel link_model(const Reach& reach, const bootstrap::Layout& layout,
                                             const costs::MachineCosts& costs);

/// Returns the properties that predictions are based on.
[[nodiscard]] bootstrap::LinksCountedOn counted_on(const bootstrap::Layout& layout,
                                                   const costs::MachineCosts& costs);

}  // namespace pccl::comm
