// The search in numbers: which paths are allowed, what a channel takes of every link, and bounds on
// what any plan can have.
#pragma once

#include <vector>

#include "csrc/topo/search/hamiltonian.h"
#include "csrc/topo/search/packing.h"
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// The worst types that a plan may use.
struct TypeLimits {
    PathType intra = PathType::kLoc;
    PathType inter = PathType::kLoc;
};

/// A channel without its bandwidth.
struct Route {
    std::vector<int> order;
    int net_in = kNoNet;
    int net_out = kNoNet;

    [[nodiscard]] bool is_one_of_a_pair() const { return net_in != net_out; }
    /// The other way round.
    [[nodiscard]] Route reversed() const;
    friend bool operator==(const Route&, const Route&) = default;
};

class Problem {
   public:
    /// Borrows the topology.
    Problem(const Topology& topology, const SearchOptions& options, const TypeLimits& limits);

    [[nodiscard]] const SearchOptions& options() const { return options_; }
    [[nodiscard]] const TypeLimits& limits() const { return limits_; }
    [[nodiscard]] int gpus() const { return gpus_; }
    [[nodiscard]] bool is_multi_node() const { return options_.nodes > 1; }
    [[nodiscard]] bool is_ring() const { return options_.pattern == Pattern::kRing; }
    /// By link of the graph.
    [[nodiscard]] const std::vector<double>& capacity() const { return capacity_; }
    /// Indices of the ports that some GPU reaches within the limits.
    [[nodiscard]] const std::vector<int>& nets() const { return nets_; }
    /// GPUs that reach the port within the limits; only the closest of them.
    [[nodiscard]] std::vector<int> reach(int net) const;
    [[nodiscard]] std::vector<int> closest(int net) const;

    /// Nodes of the graph.
    [[nodiscard]] int gpu_node(int gpu) const;
    [[nodiscard]] int net_node(int net) const;

    [[nodiscard]] bool may_hop(int from, int to) const;
    /// What a GB/s takes of links; half both ways for trees.
    [[nodiscard]] Usage hop(int from, int to) const;
    [[nodiscard]] Usage enter(int net, int gpu) const;
    [[nodiscard]] Usage leave(int gpu, int net) const;
    /// Of a whole route; together with the reversed one, half each, where the NICs differ.
    [[nodiscard]] Usage usage(const Route& route) const;

    /// All GPUs meet in one NVSwitch, and the limits allow NVLink only.
    [[nodiscard]] bool is_switched() const;
    /// Of the data that a channel carries, how much passes its NICs each way.
    [[nodiscard]] double net_share() const;
    /// GB/s that the ports can bring to the GPUs, whatever the channels: a maximal flow.
    [[nodiscard]] double net_capacity() const { return net_capacity_; }
    /// No plan with `channels` channels has more.
    [[nodiscard]] double bound(int channels) const;

   private:
    /// The GPU with the least, and the most, of the links by which hops leave it, and all together.
    struct HopCapacity {
        double least = 0;
        double most = 0;
        double sum = 0;
    };
    void add(Usage& usage, int from, int to, double weight) const;
    void add_hop(Usage& usage, int from, int to) const;
    void add_nets(Usage& usage, const Route& route, double weight) const;
    void add_head(Usage& usage, int gpu, double weight) const;
    void add_route(Usage& usage, const Route& route) const;
    [[nodiscard]] HopCapacity measure_hops() const;
    [[nodiscard]] double measure_nets() const;

    const Topology& topology_;
    SearchOptions options_;
    TypeLimits limits_;
    int gpus_;
    std::vector<double> capacity_;
    std::vector<int> nets_;
    HopCapacity hop_capacity_;
    double net_capacity_ = 0;
};

/// The largest flow from `sources` to `sinks` over links with the given capacities (Edmonds and
/// Karp, 1972); a link that is not usable has 0.
[[nodiscard]] double largest_flow(const Graph& graph, std::vector<double> capacity,
                                  const std::vector<int>& sources, const std::vector<int>& sinks);

}  // namespace pccl::topo
