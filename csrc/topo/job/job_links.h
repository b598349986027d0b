// What messages between the ranks of a job take of its links: those of each host's graph that a
// message crosses on its way between NUMA nodes, or to the network and from it.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "csrc/topo/job/job.h"

namespace pccl::topo {

/// A link of one host's graph, or its network as a whole, where the graph does not have that.
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
    /// Adds what `bytes` from one rank to another take of the links of `host`.
    void charge(int host, Rank from, Rank to, double bytes, LinkLoads& loads) const;

    struct Busiest {
        LinkOfHost link;
        double seconds = 0;  // for the bytes that it carries; 0: none carries any
    };
    [[nodiscard]] Busiest busiest(const LinkLoads& loads) const;
    [[nodiscard]] double bandwidth(const LinkOfHost& link) const;
    /// "eth0 of node7"
    [[nodiscard]] std::string name(const LinkOfHost& link) const;

   private:
    /// A node of a host's graph: where a rank's cores are.
    [[nodiscard]] int node_of(Rank rank) const;
    [[nodiscard]] std::vector<Charge> way_between(int host, Rank from, Rank to) const;
    [[nodiscard]] const std::vector<Charge>& path(int host, int from, int to) const;

    JobTopology job_;
    std::map<Rank, int> nodes_;
    std::vector<int> ports_;  // by host: node of the port of its network, or kNoNet
    mutable std::map<std::tuple<int, int, int>, std::vector<Charge>> paths_;
};

}  // namespace pccl::topo
