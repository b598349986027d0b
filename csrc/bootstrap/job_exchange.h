// SPDX-License-Identifier: Apache-2.0

// Exchange of a job's topology at the rendezvous: one rank of each host describes the host, rank 0
// combines the descriptions for all ranks, and all ranks check that their results agree.
//
// Groups on one host exchange nothing: rank 0 adds its machine to the roster, and only if ranks are
// bound to different NUMA nodes or `pccl topo --measure` has left measurements.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "csrc/bootstrap/locality.h"
#include "csrc/bootstrap/roster.h"

namespace pccl::bootstrap {

/// Returns Roster::job of a group on one host; empty where it would not matter, and for several
/// hosts.
[[nodiscard]] Result<std::string> job_on_one_host(const Locality& locality, const Roster& roster);

/// A rank and its description of its host.
struct OwnHost {
    Rank self = 0;
    const Locality& locality;
    /// Measures the path to rank 0's host, on the first rank of another host; null: no measurement.
    std::function<std::optional<topo::HostWay>(const Roster&)> time_way{};
};

/// Sets `job` in the roster of a group on several hosts; leaves other rosters unchanged. Errors are
/// those of exchange_roster().
[[nodiscard]] Status exchange_job(Store& store, Roster& roster, const OwnHost& own,
                                  const RendezvousContext& rendezvous);

/// Removes the host description and the digest of `self`. Call it once no rank needs them.
void remove_job(Store& store, Rank self, int size);

/// Returns kMismatch, with a rank, unless all ranks have equal digests.
[[nodiscard]] Status agree_on_digest(Store& store, const std::string& digest, Rank self,
                                     const RendezvousContext& rendezvous);

/// Returns the job of `survivors` alone, in which their positions are the ranks; empty for an empty
/// job.
[[nodiscard]] Result<std::string> job_of_survivors(const std::string& job,
                                                   const std::vector<Rank>& survivors);

}  // namespace pccl::bootstrap
