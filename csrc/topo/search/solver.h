// SPDX-License-Identifier: Apache-2.0

// Solver for the most bandwidth within given path types: good initial routes, then, for up to a
// dozen GPUs, column generation with the prices of the linear program until no route improves it.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/topo/search/plan.h"
#include "csrc/topo/search/problem.h"

namespace pccl::topo {

/// Returns nullopt if the limits allow no channel through all GPUs. Decrements `steps`; at zero it
/// returns the best result so far. The caller sets `seconds` and the types.
[[nodiscard]] std::optional<ChannelPlan> solve(const Problem& problem, std::int64_t& steps);

}  // namespace pccl::topo
