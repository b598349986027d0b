// Collectives over the links that there are, where not every rank has a link to every other: a
// network of circuits, or a torus.
#pragma once

#include <string_view>
#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// One way: `to` receives what `from` sends.
struct DirectedLink {
    Rank from = 0;
    Rank to = 0;
    auto operator<=>(const DirectedLink&) const = default;
};

/// all_gather, reduce_scatter, all_reduce, broadcast (from any root) and reduce over `links` alone:
/// every block goes along a tree of shortest paths, and ranks between pass it on. On a ring of
/// links that is the ring's schedule, on links between all it is one_shot's.
///
/// kInvalidArgument where a link leads nowhere, and where a rank has no way to another: it names
/// both.
[[nodiscard]] PCCL_API Result<std::vector<SourcePtr>> along_links(std::string_view name, int ranks,
                                                                  std::vector<DirectedLink> links);

}  // namespace pccl::schedule
