// The most bandwidth within given types of paths: first good routes, then, for up to a dozen GPUs,
// the routes that the linear program's prices ask for (column generation), until none would help.
#pragma once

#include <cstdint>
#include <optional>

#include "csrc/topo/search/plan.h"
#include "csrc/topo/search/problem.h"

namespace pccl::topo {

/// nullopt where the limits let no channel through all GPUs. Counts `steps` down; once they are
/// spent, the best so far must do. Leaves `seconds` and the types to the caller.
[[nodiscard]] std::optional<Plan> solve(const Problem& problem, std::int64_t& steps);

}  // namespace pccl::topo
