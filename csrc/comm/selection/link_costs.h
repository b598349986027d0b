// What the links of a group cost, within a host and between hosts: as `pccl topo --measure` found
// them on its hosts, else as the steps of rank 0's machine make likely.
#pragma once

#include <cstddef>

#include "csrc/base/ids.h"
#include "csrc/bootstrap/layout.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/costs/machine_costs.h"
#include "csrc/schedule/simulator/link_model.h"

namespace pccl::comm {

/// Bytes that a channel of a TCP link holds at least, also with the buffers that Linux grants to
/// processes without privileges: data of a power of two, and the head of its call.
inline constexpr std::size_t kTcpCapacity = 257 * kKiB;

/// How the ranks of a group reach each other.
struct Reach {
    int ranks = 1;
    bool is_on_one_host = false;  // all of them, and they may use its memory
    bool shares_memory = false;   // those of one host may use its memory
    int most_on_a_host = 1;       // ranks
    int ranks_on_core = 1;        // the most that take turns on one
};
[[nodiscard]] Reach reach_of(const bootstrap::Roster& roster, const costs::MachineCosts& costs);

/// Where two rings of so many bytes lie, one each way: in the caches of both ends.
[[nodiscard]] costs::Level level_of_rings(std::size_t bytes, const costs::MachineCosts& costs);

/// The same on every rank of a group.
[[nodiscard]] schedule::LinkModel link_model(const Reach& reach, const bootstrap::Layout& layout,
                                             const costs::MachineCosts& costs);

/// What predictions rest on.
[[nodiscard]] bootstrap::LinksCountedOn counted_on(const bootstrap::Layout& layout,
                                                   const costs::MachineCosts& costs);

}  // namespace pccl::comm
