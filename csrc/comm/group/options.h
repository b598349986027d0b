// SPDX-License-Identifier: Apache-2.0

// Options of communicators and their operations.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <pccl/collective.h>
#include <pccl/status.h>
#include <pccl/store.h>
#include "csrc/base/ids.h"
#include "csrc/schedule/generators/generators.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::bootstrap {
struct Locality;
}
namespace pccl::runtime {
class Runtime;
}

namespace pccl::comm {

class PhaseNetwork;

/// First tag that is reserved for the library; users' tags are below.
inline constexpr std::int32_t kReservedTags = 1 << 30;

struct CommunicatorImplOptions {
    Rank rank = 0;
    int size = 1;
    /// Store for this group alone at any one time; the group may have met there before. Null when
    /// size is 1.
    std::shared_ptr<Store> store{};
    /// Store of the parent group, through which this one met; null: `store`.
    std::shared_ptr<Store> base_store{};
    std::string name = "world";                           // used in messages
    std::chrono::milliseconds timeout = kDefaultTimeout;  // default of operations
    transport::TransportFlags transports = transport::TransportFlags::all();
    // Overrides PCCL_ALGORITHM unless it is empty; equal on all ranks.
    std::string algorithm{};
    /// Available schedules; equal on all ranks.
    std::shared_ptr<const schedule::Catalogue> catalogue = schedule::built_in();
    std::shared_ptr<runtime::Runtime> runtime{};  // null: the process's runtime
    /// Global ranks of the members, indexed by rank. When one group detects that a process is gone,
    /// groups that are being created find it through these. Empty: unavailable.
    std::vector<std::uint64_t> global_ranks{};
    InterruptCheck interrupted{};
    /// Bus id of this rank's GPU, "0000:0d:00.0"; empty: none, or not set.
    std::string gpu{};
    /// Placement of this rank; null: as the kernel reports it.
    std::shared_ptr<const bootstrap::Locality> locality{};
    /// The network that switches phases under this group (phase/phase_network.h); null: none.
    std::shared_ptr<PhaseNetwork> network{};
    /// The members' ranks in that network, indexed by rank; empty: equal.
    std::vector<Rank> network_ranks{};
    bool switches_phases = true;  // false: the group follows switches of another group
};

}  // namespace pccl::comm
