// SPDX-License-Identifier: Apache-2.0

// Plans of transfers: pairs of blocks of a local and a remote memory.
//
// Blocks that are adjacent on both sides are sent as one piece, a long block as several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/p2p/memory.h"

namespace pccl::p2p {

/// Range of bytes of a memory.
struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// `count` blocks of equal length, whose offsets are `stride` apart.
struct StridedExtents {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t stride = 0;
    std::uint64_t count = 0;
};

/// Ordered list of blocks of one memory.
class PCCL_API Extents {
   public:
    static constexpr std::uint64_t kMost = 1U << 30;

    Extents(StridedExtents blocks) : blocks_(blocks) {}  // NOLINT: implicit by design
    Extents(std::vector<Extent> blocks) : blocks_(std::move(blocks)) {}  // NOLINT: as above
    Extents(const Extent& block)                                         // NOLINT: as above
        : Extents(StridedExtents{block.offset, block.bytes, 0, 1}) {}

    [[nodiscard]] std::uint64_t size() const;
    /// Returns null where the blocks are an explicit list.
    [[nodiscard]] const StridedExtents* strided() const {
        return std::get_if<StridedExtents>(&blocks_);
    }
    [[nodiscard]] Extent operator[](std::uint64_t index) const {
        if (const auto* const run = strided()) return {run->base + index * run->stride, run->bytes};
        return std::get<std::vector<Extent>>(blocks_)[index];
    }
    /// Returns kInvalidArgument with the first block that exceeds a memory of `bytes` bytes, or
    /// where there are more than kMost blocks.
    [[nodiscard]] Status check_within(std::uint64_t bytes) const;

   private:
    std::variant<StridedExtents, std::vector<Extent>> blocks_;
};

/// Transfer that is prepared once and posted any number of times. Immutable.
class PCCL_API Plan {
   public:
    /// Most bytes per piece. A posted piece can no longer be given up.
    static constexpr std::uint64_t kLongestPiece = 4 * kMiB;

    /// Local side of a plan.
    struct Local {
        std::shared_ptr<LocalMemory> memory;
        Extents blocks;
    };
    struct Remote {
        RemoteMemory memory;
        Extents blocks;
    };
    /// Makes a plan. `longest` is the most bytes per piece, 1 to kLongestPiece. Returns
    /// kInvalidArgument with the first block that is out of bounds or differs in length from its
    /// counterpart.
    static Result<std::shared_ptr<const Plan>> make(Local local, Remote remote,
                                                    std::uint64_t longest = kLongestPiece);

    [[nodiscard]] std::uint64_t size() const { return local_.blocks.size(); }
    [[nodiscard]] LocalMemory& local() const { return *local_.memory; }
    [[nodiscard]] const RemoteMemory& remote() const { return remote_.memory; }
    /// Returns the bytes of all blocks.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t bytes_of(std::uint64_t index) const {
        return local_.blocks[index].bytes;
    }

    /// Position in a plan, or in a selection of its blocks.
    struct PlanCursor {
        std::uint64_t block = 0;
        std::uint64_t bytes = 0;  // bytes of the block that are done
    };
    struct PlanStep {
        transport::RmaPiece piece;
        PlanCursor after;
    };
    /// Fills `steps` with the next pieces from `from` on, and returns their number; 0 at the end.
    /// The pieces are those of the blocks `indices`, or of all blocks where that is empty.
    std::size_t steps_from(PlanCursor from, std::span<const std::uint32_t> indices,
                           std::span<PlanStep> steps) const;
    /// Returns all blocks from `from` on as one run, or nullopt where they need a list or are
    /// better joined or cut.
    [[nodiscard]] std::optional<transport::RmaRun> run_from(const PlanCursor& from) const;

   private:
    Plan(Local local, Remote remote, std::uint64_t longest);
    /// Returns whether `next` continues `last` on both sides and one piece may hold both.
    [[nodiscard]] bool joins(const transport::RmaPiece& last,
                             const transport::RmaPiece& next) const;

    const Local local_;
    const Remote remote_;
    const std::uint64_t longest_;
    const std::uint64_t bytes_;
};

}  // namespace pccl::p2p
