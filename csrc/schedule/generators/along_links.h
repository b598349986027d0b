// SPDX-License-Identifier: Apache-2.0

// Collectives for partially connected ranks: a network of circuits, or a torus.
#pragma once

#include <string_view>
#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Link in one direction: `to` receives the messages of `from`.
struct DirectedLink {
    Rank from = 0;
    Rank to = 0;
    auto operator<=>(const DirectedLink&) const = default;
};

/// Makes all_gather, reduce_scatter, all_reduce, broadcast (from any root) and reduce over `links`
/// alone. Every block follows a tree of shortest paths, and intermediate ranks forward it. On a
/// ring of links the result is the ring schedule; with links between all ranks it is one_shot.
///
/// kInvalidArgument: a link has an end that is no rank, or a rank cannot reach another; the message
/// names both.
[[nodiscard]] PCCL_API Result<std::vector<SourcePtr>> along_links(std::string_view name, int ranks,
                                                                  std::vector<DirectedLink> links);

}  // namespace pccl::schedule
