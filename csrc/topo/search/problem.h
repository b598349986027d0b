// SPDX-License-Identifier: Apache-2.0

// Search problem in numbers: allowed paths, link usage of channels, and bounds for all plans.
#pragma once

#include <vector>

#include "csrc/topo/search/hamiltonian.h"
#include "csrc/topo/search/packing.h"
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Worst path types that a plan may use.
struct TypeLimits {
    PathType intra = PathType::kLoc;
    PathType inter = PathType::kLoc;
};

/// Channel without its bandwidth.
struct Route {
    std::vector<int> order;
    int net_in = kNoNet;
    int net_out = kNoNet;

    [[nodiscard]] bool is_one_of_a_pair() const { return net_in != net_out; }
    /// Returns the route in the opposite direction.
    [[nodiscard]] Route reversed() const;
    friend bool operator==(const Route&, const Route&) = default;
};

class Problem {
   public:
    /// Borrows the topology, which must outlive the problem.
    Problem(const Topology& topology, const SearchOptions& options, const TypeLimits& limits);

    [[nodiscard]] const SearchOptions& options() const { return options_; }
    [[nodiscard]] const TypeLimits& limits() const { return limits_; }
    [[nodiscard]] int gpus() const { return gpus_; }
    [[nodiscard]] bool is_multi_node() const { return options_.nodes > 1; }
    [[nodiscard]] bool is_ring() const { return options_.pattern == Pattern::kRing; }
    /// Returns the capacities by link of the graph.
    [[nodiscard]] const std::vector<double>& capacity() const { return capacity_; }
    /// Returns the indices of the ports that a GPU reaches within the limits.
    [[nodiscard]] const std::vector<int>& nets() const { return nets_; }
    /// Return the GPUs that reach the port within the limits: all of them, or only the closest.
    [[nodiscard]] std::vector<int> reach(int net) const;
    [[nodiscard]] std::vector<int> closest(int net) const;

    /// Return nodes of the graph.
    [[nodiscard]] int gpu_node(int gpu) const;
    [[nodiscard]] int net_node(int net) const;

    [[nodiscard]] bool may_hop(int from, int to) const;
    /// Return the link usage per GB/s; for trees, half in both directions.
    [[nodiscard]] Usage hop(int from, int to) const;
    [[nodiscard]] Usage enter(int net, int gpu) const;
    [[nodiscard]] Usage leave(int gpu, int net) const;
    /// Returns the usage of a whole route; if its NICs differ, half of the route's and half of the
    /// reversed route's.
    [[nodiscard]] Usage usage(const Route& route) const;

    /// Returns whether all GPUs meet in one NVSwitch, and the limits allow NVLink only.
    [[nodiscard]] bool is_switched() const;
    /// Returns the share of a channel's data that passes its NICs in each direction.
    [[nodiscard]] double net_share() const;
    /// Returns GB/s that the ports can bring to the GPUs with any channels: a maximal flow.
    [[nodiscard]] double net_capacity() const { return net_capacity_; }
    /// Returns an upper bound for the bandwidth of plans with `channels` channels.
    [[nodiscard]] double bound(int channels) const;

   private:
    /// Capacity of the links by which hops leave a GPU: minimum, maximum and sum over GPUs.
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

/// Returns the largest flow from `sources` to `sinks` over links with the given capacities (Edmonds
/// and Karp, 1972); an unusable link has capacity 0.
[[nodiscard]] double largest_flow(const Graph& graph, std::vector<double> capacity,
                                  const std::vector<int>& sources, const std::vector<int>& sinks);

}  // namespace pccl::topo
