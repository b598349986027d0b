// Programs made of programs: a smaller collective, of some of the ranks and over parts of the
// buffers, as a part of a larger one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

struct Embedding {
    /// The rank of each rank of the smaller one.
    std::span<const Rank> ranks;
    /// Where a slice of the smaller one's buffers lies in the larger one's: as many chunks.
    std::function<Slices(const Slice&)> place;
};

/// Appends the lanes of `part`, each of which begins after all of `after`; returns their ends. What
/// `part` copies from one place to itself is left out.
std::vector<Dependency> embed(Program& program, const Program& part, const Embedding& embedding,
                              const std::vector<Dependency>& after);

}  // namespace pccl::schedule
