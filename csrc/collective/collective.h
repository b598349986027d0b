// A collective as its caller describes it: a plain value that the selector, the executor and the
// flight recorder read.
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

/// Elements of the longest block; 0 where there is none.
[[nodiscard]] constexpr std::size_t longest(std::span<const Block> blocks) {
    std::size_t most = 0;
    for (const Block& block : blocks) most = std::max(most, block.count);
    return most;
}

/// Blocks as schedule::blocks() counts them: n for the sides that hold one block for each rank,
/// else 1. They may lie anywhere and may differ in count (the "v" variants) where every rank that
/// sends or receives a block gives it the same count: all_gather's output block r and
/// reduce_scatter's input block r have one count on all ranks; all_to_all's output block r here is
/// input block `this rank` there. A root-only buffer is empty on the other ranks. The spans are
/// read during the call only; the memory must stay valid until the operation is done.
struct Collective {
    CollectiveKind kind = CollectiveKind::kAllReduce;
    DataType type = DataType::kFloat32;
    ReduceOp op = ReduceOp::kSum;
    Rank root = 0;
    std::span<const Block> inputs{};  // read only, unless the same memory as the output
    /// Of a broadcast's root it may be the input's memory, which is read only then, too.
    std::span<const Block> outputs{};
    bool is_barrier = false;  // an all_reduce of no user's data
    /// Of an all_to_all: all blocks of all ranks have one count. Else only pairs know theirs.
    bool is_even = false;
    /// Where elements of the caller's output share memory: a digest of which ones do, the same on
    /// ranks where the same ones do. The outputs here do not overlap; ranks whose digests differ
    /// get an error.
    std::uint64_t overlap = 0;
    /// Whether the caller's buffers cannot be used, so that others stand here for them: ranks that
    /// differ in this get an error, instead of waiting for one that raised.
    bool is_refused = false;
    /// By name, the same on all ranks, for this call alone; read during the call. Empty: as the
    /// group chooses.
    std::string_view algorithm{};
};

/// Whether collectives of the kind can say that they are even (Collective::is_even).
[[nodiscard]] constexpr bool may_be_even(CollectiveKind kind) {
    return kind == CollectiveKind::kAllToAll;
}

/// Whether only pairs of ranks know how long the blocks between them are.
[[nodiscard]] PCCL_API bool is_of_pairs(const Collective& collective);

/// Elements of the longest block of either side.
[[nodiscard]] constexpr std::size_t longest(const Collective& collective) {
    return std::max(longest(collective.inputs), longest(collective.outputs));
}

/// Whether the blocks are those that `rank` of `ranks` needs, and a root is one of them.
[[nodiscard]] PCCL_API Status check_shape(const Collective& collective, Rank rank, int ranks);

/// Whether a reduction keeps its partial results in a wider type (arithmetic::Accumulator).
[[nodiscard]] bool runs_widened(schedule::CollectiveKind kind, DataType type, ReduceOp op,
                                int ranks);

}  // namespace pccl
