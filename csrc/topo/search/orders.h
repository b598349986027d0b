// Good orders of GPUs to start from: in closed form behind a switch, cycles that share no link on a
// mesh of NVLinks, cheap ones elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "csrc/topo/search/problem.h"

namespace pccl::topo {

/// Routes worth trying, best ones first; none where the limits let nothing through all GPUs. Counts
/// `steps` down.
[[nodiscard]] std::vector<Route> first_routes(const Problem& problem, std::int64_t& steps);

/// Cost of each hop, at these prices of links.
[[nodiscard]] CostMatrix hop_costs(const Problem& problem, const std::vector<double>& prices);

}  // namespace pccl::topo
