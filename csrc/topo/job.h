// The machines of a job, as every rank sees them: one description for each host, exchanged as bytes
// through the rendezvous, and what follows from all of them together.
//
//     store.set(key, encode(HostTopology{name, ranks, topology}));       // one rank of each host
//     PCCL_ASSIGN_OR_RETURN(HostTopology host, decode_host(blob));       // on every rank
//     PCCL_ASSIGN_OR_RETURN(JobTopology job, JobTopology::make(std::move(hosts)));
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/topo/search.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

struct HostTopology {
    std::string name;
    std::vector<Rank> ranks;  // that run on it
    Topology topology;
};

/// What decode_host gives back equal.
[[nodiscard]] PCCL_API std::string encode(const HostTopology& host);
/// From bytes that may be anything: bounded, and kInvalidArgument in one line for what is no host.
[[nodiscard]] PCCL_API Result<HostTopology> decode_host(std::string_view blob);

/// Ports that are on one network: the same one of each host, in the order of their numbers.
struct RailOfJob {
    std::vector<int> ports;  // by host: index of the port
    double bandwidth = 0;    // GB/s of the slowest
};

class PCCL_API JobTopology {
   public:
    /// kInvalidArgument without hosts, or when a rank is on two hosts.
    [[nodiscard]] static Result<JobTopology> make(std::vector<HostTopology> hosts);

    /// In the order of their first ranks, whatever the order in which they came.
    [[nodiscard]] const std::vector<HostTopology>& hosts() const { return hosts_; }
    /// What looks wrong: the warnings of the hosts, and where hosts differ from each other.
    [[nodiscard]] const Warnings& warnings() const { return warnings_; }
    /// Those that every host has.
    [[nodiscard]] const std::vector<RailOfJob>& rails() const { return rails_; }
    /// GB/s between two hosts, over all rails.
    [[nodiscard]] double bandwidth_between_hosts() const;
    /// Index of the host that a rank is on; -1 for none.
    [[nodiscard]] int host_of(Rank rank) const;
    /// All machines are alike.
    [[nodiscard]] bool is_uniform() const;
    /// The same on all ranks that know the same job.
    [[nodiscard]] std::string digest() const;

    /// A plan for each host; unlike machines have unlike plans, each with its own channels. `nodes`
    /// of the options is ignored.
    [[nodiscard]] Result<std::vector<Plan>> search(SearchOptions options) const;

   private:
    void compare_hosts();
    void lay_rails();

    std::vector<HostTopology> hosts_;
    std::vector<RailOfJob> rails_;
    Warnings warnings_;
};

/// What a rank tells the others of its plans: equal plans, equal digests.
[[nodiscard]] PCCL_API std::string digest_of(const std::vector<Plan>& plans);

/// kMismatch, naming a rank, unless all ranks say the same; `digests` by rank.
[[nodiscard]] PCCL_API Status check_agreement(const std::vector<std::string>& digests);

}  // namespace pccl::topo
