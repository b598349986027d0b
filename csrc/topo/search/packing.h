// SPDX-License-Identifier: Apache-2.0

// Maximum amounts of routes in links of limited capacity: the linear program
//
//     maximise sum x   subject to   usage x <= capacity, x >= 0
//
// solved by the simplex method on a dense dictionary (Dantzig's rule, then Bland's when it stalls).
#pragma once

#include <map>
#include <span>
#include <vector>

namespace pccl::topo {

/// Use of links by one unit of a route; links in order, each once.
using Usage = std::map<int, double>;

struct Packing {
    std::vector<double> amounts;   // by route
    std::map<int, double> prices;  // by link: value of a unit of its capacity; others are 0
    double total = 0;
};

/// Solves the program. Every route must use at least one link, and every capacity must be at least
/// 0.
[[nodiscard]] Packing pack(std::span<const Usage> routes, std::span<const double> capacity);

/// Solves the program with equal amounts of all routes.
[[nodiscard]] Packing pack_evenly(std::span<const Usage> routes, std::span<const double> capacity);

}  // namespace pccl::topo
