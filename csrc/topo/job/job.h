// SPDX-License-Identifier: Apache-2.0

// Topology of a job: one description for each host, exchanged as bytes through the rendezvous, and
// the properties derived from all of them.
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

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/topo/machine/calibration.h"
#include "csrc/topo/machine/host_way.h"
#include "csrc/topo/search/search.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Network over which the ranks of a host reach other hosts.
struct Network {
    std::string interface;                         // "eth0"; empty: unknown
    std::string subnet;                            // "10.0.0.0/24"; empty: unknown
    int megabits = -1;                             // per second; -1: unknown
    Provenance provenance = Provenance::kAssumed;  // of its speed

    friend bool operator==(const Network&, const Network&) = default;
};

struct HostTopology {
    std::string name;
    std::vector<Rank> ranks;  // that run on it
    Topology topology;
    std::vector<int> numa{};  // by place in `ranks`: node of the rank's cores, -1: several.
                              // Shorter: unknown
    Network network{};
    Calibration calibration{};     // result of `pccl topo --measure` on this host
    std::optional<HostWay> way{};  // to the host of the job's first rank

    /// Returns the NUMA node of the rank at a place in `ranks`; -1: unknown.
    [[nodiscard]] int numa_of(std::size_t place) const {
        return place < numa.size() ? numa[place] : -1;
    }
};

/// Returns the index of the port by which the host's ranks reach other hosts; kNoNet: not among its
/// ports.
[[nodiscard]] int network_port(const HostTopology& host);

/// Connection between two hosts of a job, as its ranks use it.
struct HostLink {
    int from = 0;  // indices of hosts
    int to = 0;
    double bandwidth = 0;  // GB/s: measured between the two, or else that of the slower end
    double latency = 0;    // seconds per message; 0: not measured
    bool same_subnet = false;
};

/// Rail: the ports of one network, the same port of each host, in the order of their numbers.
struct RailOfJob {
    std::vector<int> ports;  // by host: index of the port
    double bandwidth = 0;    // GB/s of the slowest port
};

class PCCL_API JobTopology {
   public:
    /// Makes the topology. kInvalidArgument: there are no hosts, or a rank is on two hosts.
    [[nodiscard]] static Result<JobTopology> make(std::vector<HostTopology> hosts);

    /// Returns the hosts in the order of their first ranks.
    [[nodiscard]] const std::vector<HostTopology>& hosts() const { return hosts_; }
    /// Returns the first kMostWarnings warnings of the hosts, and warnings about differences
    /// between hosts.
    [[nodiscard]] const Warnings& warnings() const { return warnings_; }
    static constexpr std::size_t kMostWarnings = 4096;
    /// Returns the rails that every host has.
    [[nodiscard]] const std::vector<RailOfJob>& rails() const { return rails_; }
    /// Returns the index of the host of a rank; -1 for none.
    [[nodiscard]] int host_of(Rank rank) const;
    [[nodiscard]] int ranks() const { return static_cast<int>(host_of_.size()); }
    /// Returns GB/s of the network that a host's ranks use: the most that was measured to another
    /// host of the job, or else the port's speed, limited by a narrow connection. If the port is
    /// unknown, the first usable one counts; without any port, 10 Gb/s.
    [[nodiscard]] double network_bandwidth(int host) const;
    [[nodiscard]] Provenance network_provenance(int host) const;
    /// Returns the measurement of `pccl topo --measure` between two hosts; the slower one if both
    /// have one. nullopt: not measured.
    [[nodiscard]] std::optional<LinkTimes> measured_between(int from, int to) const;
    [[nodiscard]] HostLink link_between(int from, int to) const;

    /// Returns all ranks, neighbours next to each other: host by host, with the hosts of a subnet
    /// consecutive; within a host in the order of its ring of GPUs if each GPU has one rank, or
    /// else by NUMA node.
    [[nodiscard]] Result<std::vector<Rank>> order() const;
    /// Returns the number of parallel rings: one for each rail, from 1 to kMostRings.
    [[nodiscard]] int ring_count() const;
    static constexpr int kMostRings = 4;

    /// Returns whether all machines are equal.
    [[nodiscard]] bool is_uniform() const;
    /// Returns a digest that is equal on all ranks with the same job.
    [[nodiscard]] std::string digest() const;

    /// Returns a plan for each host; different machines have different plans, each with its own
    /// channels. Ignores `nodes` of the options.
    [[nodiscard]] Result<std::vector<ChannelPlan>> search(SearchOptions options) const;

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

/// Encodes a host for decode_host().
[[nodiscard]] PCCL_API std::string encode(const HostTopology& host);
/// Decodes bytes of any origin within limits. kInvalidArgument, in one line: the bytes are no host.
[[nodiscard]] PCCL_API Result<HostTopology> decode_host(std::string_view blob);
/// Encodes all hosts; equal machines are written once.
[[nodiscard]] PCCL_API std::string encode(const JobTopology& job);
[[nodiscard]] PCCL_API Result<JobTopology> decode_job(std::string_view blob);

/// Returns the digest that ranks compare: equal plans have equal digests.
[[nodiscard]] PCCL_API std::string digest_of(const std::vector<ChannelPlan>& plans);

/// Checks that all ranks have the same digest; `digests` are by rank. kMismatch contains a rank
/// that differs.
[[nodiscard]] PCCL_API Status check_agreement(const std::vector<std::string>& digests);

}  // namespace pccl::topo
