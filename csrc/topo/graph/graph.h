// SPDX-License-Identifier: Apache-2.0

// Machine as a graph: typed nodes, joined by links with a bandwidth.
//
// Links are directed and come in pairs, one in each direction. Parallel links are merged. PCIe
// devices without a GPU or a NIC below them are left out. The NVSwitches of a host are one node.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/topo/graph/names.h"
#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

struct Node {
    NodeType type = NodeType::kPci;
    int index = 0;        // among those of its type
    int host = 0;         // index
    std::string name{};   // "gpu0", unique
    std::string label{};  // for display: bus id, NUMA node, or name of the port
    int sm = 0;           // GPU
    int dev = -1;         // GPU, NET: NCCL's number within a host
    int rank = -1;        // GPU: of the process that uses it; -1: unknown
    bool gdr = true;      // GPU, NET: NICs access GPU memory directly
    bool usable = true;   // NET: used in plans
    bool intel = false;   // CPU: GPU-to-GPU transfers through it cost more
    std::string rail{};   // NET: ports with the same name are on one network, "0x<guid>/port"
};

struct Link {
    int from = 0;
    int to = 0;
    LinkType type = LinkType::kPci;
    double bandwidth = 0;  // GB/s
    bool is_measured = false;
};

struct GraphOptions {
    bool multi_node_nvlink = false;  // the NVLinks of all hosts meet in one switch
};

class PCCL_API Graph {
   public:
    /// Builds the graph. kInvalidArgument: two GPUs have the same bus id, or there are more than
    /// kMost GPUs or NICs.
    [[nodiscard]] static Result<Graph> build(const Machine& machine, const GraphOptions& options);
    static constexpr int kMost = 640;

    [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
    [[nodiscard]] const Node& node(int id) const { return nodes_[static_cast<std::size_t>(id)]; }
    [[nodiscard]] const std::vector<Link>& links() const { return links_; }
    [[nodiscard]] const Link& link(int id) const { return links_[static_cast<std::size_t>(id)]; }
    /// Returns the link in the opposite direction.
    [[nodiscard]] static int reverse(int link) { return link ^ 1; }
    /// Returns the ids of the links that leave a node.
    [[nodiscard]] std::span<const int> links_from(int node) const {
        return adjacent_[static_cast<std::size_t>(node)];
    }

    /// Return the ids of the nodes of a type, by their index.
    [[nodiscard]] const std::vector<int>& gpus() const { return gpus_; }
    [[nodiscard]] const std::vector<int>& nets() const { return nets_; }
    [[nodiscard]] const std::vector<int>& cpus() const { return cpus_; }
    [[nodiscard]] const std::vector<int>& switches() const { return switches_; }
    [[nodiscard]] int hosts() const { return hosts_; }

    /// Returns a copy with other bandwidths for the links for which `rate_of` returns a measured
    /// one.
    using RateOf = std::function<std::optional<double>(const Link&)>;
    [[nodiscard]] Graph with(const RateOf& rate_of) const;

    /// Finds a node by name or label ("gpu0", "0000:0d:00.0", "mlx5_0"); -1 if there is none, or
    /// several.
    [[nodiscard]] int find(std::string_view name) const;

   private:
    friend class GraphBuilder;

    std::vector<Node> nodes_;
    std::vector<Link> links_;
    std::vector<std::vector<int>> adjacent_;
    std::vector<int> gpus_;
    std::vector<int> nets_;
    std::vector<int> cpus_;
    std::vector<int> switches_;
    int hosts_ = 0;
};

}  // namespace pccl::topo
