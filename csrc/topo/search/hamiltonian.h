// SPDX-License-Identifier: Apache-2.0

// Orders of all GPUs: the cheapest ones (Held and Karp, "A dynamic programming approach to
// sequencing problems", 1962), and cycles that share no link.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pccl::topo {

/// Costs from each of n GPUs to each other; infinite without a path.
class CostMatrix {
   public:
    explicit CostMatrix(int n)
        : n_(n), costs_(static_cast<std::size_t>(n) * static_cast<std::size_t>(n)) {}
    [[nodiscard]] int size() const { return n_; }
    [[nodiscard]] double& at(int from, int to) { return costs_[index(from, to)]; }
    [[nodiscard]] double at(int from, int to) const { return costs_[index(from, to)]; }

   private:
    [[nodiscard]] std::size_t index(int from, int to) const {
        return static_cast<std::size_t>(from) * static_cast<std::size_t>(n_) +
               static_cast<std::size_t>(to);
    }
    int n_;
    std::vector<double> costs_;
};

/// Cheapest paths from one GPU through all others, one for each last GPU.
class HeldKarp {
   public:
    static constexpr int kMost = 16;
    /// Returns the steps of the construction for n GPUs.
    [[nodiscard]] static std::int64_t steps(int n);

    /// Computes the paths for at most kMost GPUs; uses n 2^n doubles of memory.
    HeldKarp(const CostMatrix& costs, int start);
    /// Returns the cost; infinite if there is no path.
    [[nodiscard]] double cost(int last) const;
    /// Returns the path from the start to `last`, whose cost must be finite.
    [[nodiscard]] std::vector<int> path(int last) const;

   private:
    [[nodiscard]] double& at(std::size_t others, int last) {
        return best_[others * static_cast<std::size_t>(n_) + static_cast<std::size_t>(last)];
    }
    [[nodiscard]] double at(std::size_t others, int last) const {
        return best_[others * static_cast<std::size_t>(n_) + static_cast<std::size_t>(last)];
    }
    [[nodiscard]] int gpu(int other) const { return other < start_ ? other : other + 1; }
    [[nodiscard]] int other(int gpu) const { return gpu < start_ ? gpu : gpu - 1; }

    const CostMatrix& costs_;
    int n_;
    int start_;
    std::vector<double> best_;  // by the set of other GPUs visited, and the last of them
};

/// Returns undirected cycles through all GPUs that together use each pair (i, j) at most
/// units[i][j] times; `units` is symmetric. Returns as many as the DFS finds within `steps`, which
/// it decrements.
[[nodiscard]] std::vector<std::vector<int>> disjoint_cycles(
    const std::vector<std::vector<int>>& units, std::int64_t& steps);

}  // namespace pccl::topo
