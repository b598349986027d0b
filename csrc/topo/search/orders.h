// SPDX-License-Identifier: Apache-2.0

// Initial orders of GPUs: in closed form behind a switch, cycles that share no link on a mesh of
// NVLinks, cheap orders elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/topo/search/problem.h"

namespace pccl::topo {

/// Returns promising routes, the best first; none if the limits allow no path through all GPUs.
/// Decrements `steps`.
[[nodiscard]] std::vector<Route> first_routes(const Problem& problem, std::int64_t& steps);

/// Returns the cost of each hop at these prices of links.
[[nodiscard]] CostMatrix hop_costs(const Problem& problem, const std::vector<double>& prices);

}  // namespace pccl::topo
