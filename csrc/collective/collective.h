// SPDX-License-Identifier: Apache-2.0

// Arguments of a collective: a plain value for the selector, the executor and the flight recorder.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "csrc/abi/datatype.h"
#include "csrc/base/ids.h"
#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"

namespace pccl {

using schedule::CollectiveKind;

/// Host memory of one block of a buffer.
struct Block {
    std::byte* data = nullptr;
    std::size_t count = 0;  // elements
    auto operator<=>(const Block&) const = default;
};

/// Returns the elements of the longest block; 0 if there is none.
[[nodiscard]] constexpr std::size_t longest(std::span<const Block> blocks) {
    std::size_t most = 0;
    for (const Block& block : blocks) most = std::max(most, block.count);
    return most;
}

/// A collective call. The number of blocks is that of schedule::blocks(): n for sides with one
/// block for each rank, otherwise 1. Blocks may lie anywhere and may differ in count (the "v"
/// variants) if every rank that sends or receives a block passes one count for it: all_gather's
/// output block r and reduce_scatter's input block r have one count on all ranks; all_to_all's
/// output block r here is input block `this rank` there. A root-only buffer is empty on the other
/// ranks. The spans are read during the call only; the memory must stay valid until the operation
/// is done.
struct Collective {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Rank root = 0;
    std::span<const Block> inputs{};  // read only, unless the same memory as the output
    /// On the root of a broadcast it may be the input's memory, which is then read only, too.
    std::span<const Block> outputs{};
    bool is_barrier = false;  // an all_reduce without user data
    /// For an all_to_all: all blocks of all ranks have one count. If false, only pairs of ranks
    /// have the counts of their blocks.
    bool is_even = false;
    /// Digest of the elements of the caller's output that share memory, equal on ranks with equal
    /// sharing; 0: none do. The outputs here do not overlap; ranks whose digests differ get an
    /// error.
    std::uint64_t overlap = 0;
    /// Whether the caller's buffers are invalid and placeholders are passed instead: ranks that
    /// differ in this get an error instead of waiting for a rank that raised one.
    bool is_refused = false;
    /// Algorithm for this call alone, equal on all ranks; read during the call. Empty: the group
    /// chooses.
    std::string_view algorithm{};
};

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
[[nodiscard]] bool runs_widened(schedule::CollectiveKind kind, DataType type, ReduceOp op,
                                int ranks);

}  // namespace pccl
