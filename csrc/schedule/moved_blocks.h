// Whose block the chunks are that a program moves: where blocks differ in length (the "v" variants
// of all_gather and reduce_scatter), so do their chunks, those that wait in scratch, too.
#pragma once

#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// all_gather and reduce_scatter: all ranks know the lengths of all blocks.
[[nodiscard]] constexpr bool has_known_blocks(CollectiveKind kind) {
    return kind == CollectiveKind::kAllGather || kind == CollectiveKind::kReduceScatter;
}

/// Of each chunk of a step, as moved_by() has them.
using MovedBlocks = std::vector<Rank>;

/// By lane and step, for a program of `rank` whose steps that touch one place of scratch are
/// ordered by its lanes and their dependencies alone. What a message brings into scratch without a
/// chunk of this rank's to tell is taken for a part of its own block; kNoRank: places of two blocks
/// meet. Empty for collectives that have no such blocks.
[[nodiscard]] PCCL_API std::vector<std::vector<MovedBlocks>> moved_blocks(const Program& program,
                                                                          const Shape& shape,
                                                                          Rank rank);

}  // namespace pccl::schedule
