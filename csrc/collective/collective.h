// SPDX-License-Identifier: Apache-2.0

// Checks of the arguments of a collective.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

#include <pccl/collective.h>
#include <pccl/status.h>
#include "csrc/schedule/schedule.h"

namespace pccl {

/// Returns the elements of the longest block; 0 if there is none.
[[nodiscard]] constexpr std::size_t longest(std::span<const Block> blocks) {
    std::size_t most = 0;
    for (const Block& block : blocks) most = std::max(most, block.count);
    return most;
}

/// Returns whether Collective::is_even applies to the kind.
[[nodiscard]] constexpr bool may_be_even(CollectiveKind kind) {
    return kind == CollectiveKind::kAllToAll;
}

/// Returns whether only pairs of ranks have the lengths of the blocks between them.
[[nodiscard]] PCCL_API bool is_of_pairs(const Collective& collective);

/// Returns the elements of the longest block of either side.
[[nodiscard]] constexpr std::size_t longest(const Collective& collective) {
    return std::max(longest(collective.inputs), longest(collective.outputs));
}

/// Returns ok if `rank` of `ranks` passes the required number of blocks and a valid root.
[[nodiscard]] PCCL_API Status check_shape(const Collective& collective, Rank rank, int ranks);

/// Returns whether a reduction keeps its partial results in a wider type (arithmetic::Accumulator).
[[nodiscard]] bool runs_widened(CollectiveKind kind, DataType type, ReduceOp op, int ranks);

/// Returns the blocks of one side.
[[nodiscard]] constexpr std::span<const Block> known_blocks(const Collective& collective) {
    return collective.kind == CollectiveKind::kReduceScatter || collective.outputs.empty()
               ? collective.inputs
               : collective.outputs;
}

}  // namespace pccl
