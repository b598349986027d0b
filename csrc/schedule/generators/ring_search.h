// SPDX-License-Identifier: Apache-2.0

// Search for a ring through all ranks (a Hamiltonian cycle) along more links than a ring has.
#pragma once

#include <vector>

#include "csrc/schedule/generators/along_links.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Returns ranks by position, rank 0 first; deterministic for given links. Tries the ranks with the
/// fewest onward links first (Warnsdorff's rule) and backtracks when a rank can no longer be
/// reached or left. Empty if there is no ring, or none within about 10^7 steps; a torus takes a few
/// more steps than it has ranks.
[[nodiscard]] RankOrder ring_through_all(int ranks, const std::vector<DirectedLink>& links);

}  // namespace pccl::schedule
