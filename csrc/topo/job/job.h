// The machines of a job, as every rank sees them: one description for each host, exchanged as bytes
// through the rendezvous, and what follows from all of them together.
//
//     store.set(key, encode(HostTopology{name, ranks, topology}));       // one rank of each host
//     PCCL_ASSIGN_OR_RETURN(HostTopology host, decode_host(blob));       // on rank 0
//     PCCL_ASSIGN_OR_RETURN(JobTopology job, JobTopology::make(std::move(hosts)));
//     store.set(key, encode(job));                                       // for all: decode_job()
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/topo/machine/calibration.h"
#include "csrc/topo/machine/host_way.h"
#include "csrc/topo/search/search.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// By which the ranks of a host reach those of others.
struct Network {
    std::string interface;                         // "eth0"; empty: unknown
    std::string subnet;                            // "10.0.0.0/24"; empty: unknown
    int megabits = -1;                             // a second; -1: unknown
    Provenance provenance = Provenance::kAssumed;  // of its speed

    friend bool operator==(const Network&, const Network&) = default;
};

struct HostTopology {
    std::string name;
    std::vector<Rank> ranks;  // that run on it
    Topology topology;
    std::vector<int> numa{};  // by place in `ranks`: the node of a rank's cores, -1: several.
                              // Shorter: unknown
    Network network{};
    Calibration calibration{};     // what `pccl topo --measure` found there
    std::optional<HostWay> way{};  // to the host of the job's first rank

    /// The NUMA node of the rank at a place in `ranks`; -1: unknown.
    [[nodiscard]] int numa_of(std::size_t place) const {
        return place < numa.size() ? numa[place] : -1;
    }
};

/// Index among its ports of that by which its ranks reach other hosts; kNoNet: not among them.
[[nodiscard]] int network_port(const HostTopology& host);

/// The way between two hosts of a job, as its ranks use it.
struct HostLink {
    int from = 0;  // indices of hosts
    int to = 0;
    double bandwidth = 0;  // GB/s: measured between the two, or else of the slower end
    double latency = 0;    // seconds of a message; 0: not measured
    bool same_subnet = false;
};

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
    /// What looks wrong: the warnings of the hosts, the first kMostWarnings of them, and where
    /// hosts differ from each other.
    [[nodiscard]] const Warnings& warnings() const { return warnings_; }
    static constexpr std::size_t kMostWarnings = 4096;
    /// Those that every host has.
    [[nodiscard]] const std::vector<RailOfJob>& rails() const { return rails_; }
    /// Index of the host that a rank is on; -1 for none.
    [[nodiscard]] int host_of(Rank rank) const;
    [[nodiscard]] int ranks() const { return static_cast<int>(host_of_.size()); }
    /// GB/s of the network that a host's ranks use: the most that was measured to another host of
    /// the job, or else what its port has, and no more than a way that is narrow. Where nobody says
    /// which port that is, of the first usable one; without any, 10 Gb/s.
    [[nodiscard]] double network_bandwidth(int host) const;
    [[nodiscard]] Provenance network_provenance(int host) const;
    /// What `pccl topo --measure` found on either of two hosts; of both, the slower. nullopt where
    /// it was not run.
    [[nodiscard]] std::optional<LinkTimes> measured_between(int from, int to) const;
    [[nodiscard]] HostLink link_between(int from, int to) const;

    /// All ranks, neighbours next to each other: host by host, those of one subnet in a row; on a
    /// host in the order of its ring of GPUs where each rank has one, else by NUMA node.
    [[nodiscard]] Result<std::vector<Rank>> order() const;
    /// Rings to run side by side: one for each rail, from 1 to kMostLanes.
    [[nodiscard]] int lanes() const;
    static constexpr int kMostLanes = 4;

    /// All machines are alike.
    [[nodiscard]] bool is_uniform() const;
    /// The same on all ranks that know the same job.
    [[nodiscard]] std::string digest() const;

    /// A plan for each host; unlike machines have unlike plans, each with its own channels. `nodes`
    /// of the options is ignored.
    [[nodiscard]] Result<std::vector<Plan>> search(SearchOptions options) const;

   private:
    Status place_ranks();
    void compare_hosts();
    void lay_rails();
    [[nodiscard]] std::optional<double> measured_bandwidth(int host) const;
    [[nodiscard]] std::optional<double> narrow_bandwidth(int host) const;
    [[nodiscard]] static double declared_bandwidth(const HostTopology& end);
    [[nodiscard]] std::vector<int> hosts_by_subnet() const;
    [[nodiscard]] Result<std::vector<Rank>> order_on(const HostTopology& host) const;

    std::vector<HostTopology> hosts_;
    std::map<Rank, int> host_of_;
    std::vector<RailOfJob> rails_;
    Warnings warnings_;
};

/// What decode_host gives back equal.
[[nodiscard]] PCCL_API std::string encode(const HostTopology& host);
/// From bytes that may be anything: bounded, and kInvalidArgument in one line for what is no host.
[[nodiscard]] PCCL_API Result<HostTopology> decode_host(std::string_view blob);
/// All hosts; machines that are alike are written once.
[[nodiscard]] PCCL_API std::string encode(const JobTopology& job);
[[nodiscard]] PCCL_API Result<JobTopology> decode_job(std::string_view blob);

/// What a rank tells the others of its plans: equal plans, equal digests.
[[nodiscard]] PCCL_API std::string digest_of(const std::vector<Plan>& plans);

/// kMismatch, naming a rank, unless all ranks say the same; `digests` by rank.
[[nodiscard]] PCCL_API Status check_agreement(const std::vector<std::string>& digests);

}  // namespace pccl::topo
