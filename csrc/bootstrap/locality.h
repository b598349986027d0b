// Where a process runs: its host, the NUMA node of its cores, its GPU, and what of these the ranks
// of a job tell each other.
#pragma once

#include <optional>
#include <string>

#include "csrc/base/status.h"
#include "csrc/bootstrap/roster.h"
#include "csrc/topo/job/job.h"

namespace pccl::bootstrap {

struct Locality {
    std::string machine;  // the same in all processes of this host, and nowhere else
    std::string host;     // its name, for messages
    int numa = -1;        // -1: several, or unknown
    topo::Network network{};
    /// Empty: detected when it is first needed.
    std::optional<topo::Topology> topology{};

    /// Of this process. Where the kernel does not say, fields are as they are above. Fails
    /// (kResourceExhausted) when this process may open no more files, and cannot ask.
    [[nodiscard]] static Result<Locality> of_process();
};

/// "0D:00.0" as "0000:0d:00.0"; kInvalidArgument for what is no bus id of a PCI device.
[[nodiscard]] Result<std::string> bus_id_of(const std::string& gpu);

/// This machine's, detected once in a process.
[[nodiscard]] Result<topo::Topology> topology_of(const Locality& locality);

/// The host on which `ranks` of the roster run, `locality` being that of one of them.
[[nodiscard]] Result<topo::HostTopology> host_of_ranks(const Locality& locality,
                                                       const Roster& roster,
                                                       const std::vector<Rank>& ranks);

/// Whether all ranks share one host and its memory, as far as the roster tells.
[[nodiscard]] bool is_on_one_host(const Roster& roster);

/// Why ranks of one host share no memory, though both have the transport: "rank 1 ... "; empty
/// where all do. The same on all ranks.
[[nodiscard]] std::string why_memory_is_apart(const Roster& roster);

/// How many ranks run on the host of `rank`, itself among them.
[[nodiscard]] int ranks_beside(const Roster& roster, Rank rank);

/// The ranks of each host, in the order of their first ones.
[[nodiscard]] std::vector<std::vector<Rank>> ranks_by_host(const Roster& roster);

}  // namespace pccl::bootstrap
