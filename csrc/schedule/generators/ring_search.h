// A ring through all ranks along links of which there are more than that: a Hamiltonian cycle.
#pragma once

#include <vector>

#include "csrc/schedule/generators/along_links.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Ranks by position, rank 0 first; the same for the same links. Tries the ranks with the fewest
/// ways on first (Warnsdorff's rule), and goes back where some rank can no longer be reached or
/// left. Empty where there is none, or none within some 10^7 steps: a torus takes a few more than
/// it has ranks.
[[nodiscard]] RankOrder ring_through_all(int ranks, const std::vector<DirectedLink>& links);

}  // namespace pccl::schedule
