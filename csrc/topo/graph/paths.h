// SPDX-License-Identifier: Apache-2.0

// Best path between any two devices: by type, then by bandwidth, then by length.
//
// Each GPU and CPU has one tree of parent links for each required path type, so 72 GPUs with their
// NICs take about a megabyte. Detours over a third node (a CPU if GPUs or NICs may not communicate
// directly, a GPU for NVB and PXN) are stored as that node.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "csrc/topo/graph/graph.h"

namespace pccl::topo {

struct PathOptions {
    bool peer_to_peer = true;  // GPUs may read and write each other's memory directly
};

struct Path {
    PathType type = PathType::kDis;
    double bandwidth = 0;  // GB/s of its narrowest link
    int hops = 0;
};

/// Use of a link per GB/s on a path.
struct Charge {
    int link = 0;
    double weight = 1;
};

class PCCL_API PathTable {
   public:
    /// Borrows the graph, which must outlive the table.
    PathTable(const Graph& graph, const PathOptions& options);

    /// Returns the path between GPUs, NETs and CPUs; kDis for other nodes.
    [[nodiscard]] Path path(int from, int to) const;
    /// Returns the ids of the links along the path, in order.
    [[nodiscard]] std::vector<int> links(int from, int to) const;
    /// Returns the path's use of each link: 1, with two exceptions:
    /// - 6/5 of PCIe links, between GPUs through the host bridge of an Intel CPU;
    /// - 1/8 more in the reverse direction, if a device other than a GPU writes into a GPU before
    ///   sm 80.
    [[nodiscard]] std::vector<Charge> charges(int from, int to) const;

   private:
    struct PathStep {
        double bandwidth = 0;
        int link = -1;  // by which the node is reached
        int hops = 0;
    };
    struct Tree {
        PathType type = PathType::kLoc;
        std::vector<PathStep> steps;  // by node
    };
    struct PathOrigin {
        std::vector<Tree> trees;
        std::vector<int> tree_of;  // by node: an index into trees, or -1
    };

    [[nodiscard]] PathType step_type(int link, int c2c_cpu) const;
    [[nodiscard]] std::vector<PathType> types_that_occur() const;
    void grow(int source, const std::vector<PathType>& types);
    [[nodiscard]] Tree widest(int source, PathType limit) const;
    [[nodiscard]] int local_cpu(int node) const;
    void detour_gpus(const PathOptions& options);
    void detour_over_gpu(int from, int to);
    void detour_nets();
    void detour_over_peer(int gpu, int net);
    [[nodiscard]] int via(int from, int to) const;
    [[nodiscard]] bool is_source(int node) const {
        return !origins_[static_cast<std::size_t>(node)].trees.empty();
    }
    [[nodiscard]] Path direct(int from, int to) const;
    void append_direct(int from, int to, std::vector<int>& links) const;

    const Graph& graph_;
    std::vector<PathOrigin> origins_;         // by node; empty except for GPUs and CPUs
    std::map<std::pair<int, int>, int> via_;  // (GPU, GPU or NET) -> intermediate node
};

}  // namespace pccl::topo
