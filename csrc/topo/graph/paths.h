// The best path between any two devices: by type, then the widest, then the shortest.
//
// For every GPU and CPU one tree of parent links for each type of path that is needed, so 72 GPUs
// with their NICs take about a megabyte. Detours over a third node (a CPU where GPUs or NICs may
// not talk directly, a GPU for NVB and PXN) are kept as that node.
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

/// What a GB/s on a path takes of one link.
struct Charge {
    int link = 0;
    double weight = 1;
};

class PCCL_API PathTable {
   public:
    /// Borrows the graph.
    PathTable(const Graph& graph, const PathOptions& options);

    /// Between GPUs, NETs and CPUs; kDis for others.
    [[nodiscard]] Path path(int from, int to) const;
    /// Ids of the links along the path, in order.
    [[nodiscard]] std::vector<int> links(int from, int to) const;
    /// What the path takes of each link: once, but for
    ///  - 6/5 of PCIe links, between GPUs through the host bridge of an Intel CPU;
    ///  - 1/8 more of the way back, where another device than a GPU writes into one before sm 80.
    [[nodiscard]] std::vector<Charge> charges(int from, int to) const;

   private:
    struct Step {
        double bandwidth = 0;
        int link = -1;  // by which the node is reached
        int hops = 0;
    };
    struct Tree {
        PathType type = PathType::kLoc;
        std::vector<Step> steps;  // by node
    };
    struct Origin {
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
    std::vector<Origin> origins_;             // by node; empty for others than GPUs and CPUs
    std::map<std::pair<int, int>, int> via_;  // (GPU, GPU or NET) -> node between
};

}  // namespace pccl::topo
