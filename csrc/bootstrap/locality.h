// SPDX-License-Identifier: Apache-2.0

// Location of a process: its host, the NUMA node of its cores, its GPU; and the location data that
// the ranks of a job exchange.
#pragma once

#include <optional>
#include <string>

#include <pccl/status.h>
#include "csrc/bootstrap/roster.h"
#include "csrc/topo/job/job.h"

namespace pccl::bootstrap {

struct Locality {
    std::string machine;  // equal in all processes of this host, and unique to it
    std::string host;     // its name, for error messages
    int numa = -1;        // -1: several, or unknown
    topo::Network network{};
    /// Empty: detected on first use.
    std::optional<topo::Topology> topology{};

    /// Returns the locality of this process. Fields that the kernel does not report keep their
    /// defaults. Returns kResourceExhausted when this process has no free file descriptor.
    [[nodiscard]] static Result<Locality> of_process();
};

/// Returns "0000:0d:00.0" for "0D:00.0"; kInvalidArgument for text that is no bus id of a PCI
/// device.
[[nodiscard]] Result<std::string> bus_id_of(const std::string& gpu);

/// Returns the topology of this machine, detected once per process.
[[nodiscard]] Result<topo::Topology> topology_of(const Locality& locality);

/// Returns the host on which `ranks` of the roster run. `locality` is that of one of them.
[[nodiscard]] Result<topo::HostTopology> host_of_ranks(const Locality& locality,
                                                       const Roster& roster,
                                                       const std::vector<Rank>& ranks);

/// Returns whether all ranks share one host and its memory, according to the roster.
[[nodiscard]] bool is_on_one_host(const Roster& roster);

/// Returns why ranks of one host share no memory although both have the transport: "rank 1 ... ";
/// empty where all do. The result is the same on all ranks.
[[nodiscard]] std::string why_memory_is_apart(const Roster& roster);

/// Returns how many ranks run on the host of `rank`, including itself.
[[nodiscard]] int ranks_beside(const Roster& roster, Rank rank);

/// Returns the number of cores that this process may use: those of its affinity, or fewer where its
/// CPU quota allows less time; at least 1.
[[nodiscard]] PCCL_API int usable_cores();
/// Returns how many ranks of the host of `rank` may use the same set of cores, including itself.
[[nodiscard]] int core_sharers(const Roster& roster, Rank rank);
/// Returns how many cores a rank may use if the ranks of its host share equally those that they
/// have in common; at least 1.
[[nodiscard]] int core_share(const Roster& roster, Rank rank);
/// Returns the minimum over all ranks of the threads that each may run: of its setting where that
/// is set, of core_share() otherwise.
[[nodiscard]] int least_threads(const Roster& roster);

/// Returns the ranks of each host, in the order of their first ranks.
[[nodiscard]] std::vector<std::vector<Rank>> ranks_by_host(const Roster& roster);

}  // namespace pccl::bootstrap
