// How much of each route fits into links of limited capacity: the linear program
//
//     maximise sum x   subject to   usage x <= capacity, x >= 0
//
// by the simplex method on a dense dictionary (Dantzig's rule, Bland's once it stalls).
#pragma once

#include <map>
#include <span>
#include <vector>

namespace pccl::topo {

/// What one unit of a route takes, by link; links in order, each once.
using Usage = std::map<int, double>;

struct Packing {
    std::vector<double> amounts;   // by route
    std::map<int, double> prices;  // by link: what a unit of its capacity is worth; others are 0
    double total = 0;
};

/// Every route must use some link, and every capacity be at least 0.
[[nodiscard]] Packing pack(std::span<const Usage> routes, std::span<const double> capacity);

/// As much of each route as of any other.
[[nodiscard]] Packing pack_evenly(std::span<const Usage> routes, std::span<const double> capacity);

}  // namespace pccl::topo
