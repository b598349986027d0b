// SPDX-License-Identifier: Apache-2.0

// Programs made of programs: a smaller collective over some ranks and parts of the buffers,
// embedded in a larger one.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "csrc/schedule/source.h"

namespace pccl::schedule {

struct Embedding {
    /// larger collective's rank for each rank of the smaller one
    std::span<const Rank> ranks;
    /// Maps a slice of the smaller collective's buffers to slices of the larger one's with as many
    /// chunks.
    std::function<Slices(const Slice&)> place;
};

/// Appends the lanes of `part`, each of which begins after all of `after`. Returns the last steps
/// of the lanes. Leaves out copies from a place to itself.
std::vector<Dependency> embed(Program& program, const Program& part, const Embedding& embedding,
                              const std::vector<Dependency>& after);

}  // namespace pccl::schedule
