// SPDX-License-Identifier: Apache-2.0

// Owning block of each chunk that a program moves. Where blocks differ in length (the "v" variants
// of all_gather and reduce_scatter), their chunks do too, including chunks in scratch.
#pragma once

#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// Returns true for all_gather and reduce_scatter: every rank has the lengths of all blocks.
[[nodiscard]] constexpr bool has_known_blocks(CollectiveKind kind) {
    return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}

/// Block of each chunk of a step, in the order of moved_by().
using MovedBlocks = std::vector<Rank>;

/// Returns the blocks by lane and step, for a program of `rank` whose steps on one place of scratch
/// are ordered by its lanes and their dependencies alone. A message received into scratch, with no
/// local chunk that identifies its block, counts as part of this rank's own block. kNoRank: the
/// source and destination belong to different blocks. Empty for collectives without known blocks.
[[nodiscard]] PCCL_API std::vector<std::vector<MovedBlocks>> moved_blocks(const Program& program,
                                                                          const Shape& shape,
                                                                          Rank rank);

}  // namespace pccl::schedule
