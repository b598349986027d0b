// The topology of a job over the rendezvous: one rank of each host says what the host looks like,
// rank 0 puts it together for all, and all check that they found the same.
//
// Groups on one host exchange nothing for it: rank 0 adds its machine to the roster, and only where
// ranks are bound to different NUMA nodes or `pccl topo --measure` left something to go by.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "csrc/bootstrap/locality.h"
#include "csrc/bootstrap/roster.h"

namespace pccl::bootstrap {

/// Roster::job of a group on one host; empty where nothing follows from it, or for several hosts.
[[nodiscard]] Result<std::string> job_on_one_host(const Locality& locality, const Roster& roster);

/// A rank, and what it can say of its host.
struct OwnHost {
    Rank self = 0;
    const Locality& locality;
    /// The way to rank 0's host, asked of the first rank of another one; null: nobody times it.
    std::function<std::optional<topo::HostWay>(const Roster&)> time_way{};
};

/// Sets `job` of the roster of a group on several hosts; others are left alone. Errors as those of
/// exchange_roster().
[[nodiscard]] Status exchange_job(Store& store, Roster& roster, const OwnHost& own,
                                  const RendezvousContext& rendezvous);

/// What `self` has told of its host and its digest, once nobody needs it any more.
void remove_job(Store& store, Rank self, int size);

/// kMismatch, naming a rank, unless all ranks come with equal digests.
[[nodiscard]] Status agree_on_digest(Store& store, const std::string& digest, Rank self,
                                     const RendezvousContext& rendezvous);

/// The job of `survivors` alone, who get their places there as ranks; empty for an empty one.
[[nodiscard]] Result<std::string> job_of_survivors(const std::string& job,
                                                   const std::vector<Rank>& survivors);

}  // namespace pccl::bootstrap
