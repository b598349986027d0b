// SPDX-License-Identifier: Apache-2.0

// Load of a job's messages on its links: links of a host's graph that a message crosses between
// NUMA nodes, or to and from the network.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "csrc/topo/job/job.h"

namespace pccl::topo {

/// Link of one host's graph, or its network as a whole if the graph does not contain the port.
struct LinkOfHost {
    static constexpr int kOut = -1;
    static constexpr int kIn = -2;

    int host = 0;
    int link = 0;
    auto operator<=>(const LinkOfHost&) const = default;
};

/// Bytes over each link, in any unit.
using LinkLoads = std::map<LinkOfHost, double>;

class PCCL_API JobLinks {
   public:
    explicit JobLinks(JobTopology job);

    [[nodiscard]] const JobTopology& job() const { return job_; }
    /// Adds the load of `bytes` from one rank to another on the links of `host`.
    void charge(int host, Rank from, Rank to, double bytes, LinkLoads& loads) const;

    struct Busiest {
        LinkOfHost link;
        double seconds = 0;  // time of its load; 0: no link carries any
    };
    [[nodiscard]] Busiest busiest(const LinkLoads& loads) const;
    [[nodiscard]] double bandwidth(const LinkOfHost& link) const;
    /// Returns "eth0 of node7".
    [[nodiscard]] std::string name(const LinkOfHost& link) const;

   private:
    /// Returns the node of a host's graph with the rank's cores.
    [[nodiscard]] int node_of(Rank rank) const;
    [[nodiscard]] std::vector<Charge> way_between(int host, Rank from, Rank to) const;
    [[nodiscard]] const std::vector<Charge>& path(int host, int from, int to) const;

    JobTopology job_;
    std::map<Rank, int> nodes_;
    std::vector<int> ports_;  // by host: node of its network's port, or kNoNet
    mutable std::map<std::tuple<int, int, int>, std::vector<Charge>> paths_;
};

}  // namespace pccl::topo
