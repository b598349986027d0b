// Which bytes go where: pairs of blocks of a local and a remote memory.
//
// Blocks that touch on both sides go as one piece, and a long one in several.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/p2p/memory.h"

namespace pccl::p2p {

/// Bytes of a memory.
struct Extent {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// `count` blocks of the same length, whose offsets lie `stride` apart.
struct StridedExtents {
    std::uint64_t base = 0;
    std::uint64_t bytes = 0;
    std::uint64_t stride = 0;
    std::uint64_t count = 0;
};

/// Some blocks of one memory, in an order.
class PCCL_API Extents {
   public:
    static constexpr std::uint64_t kMost = 1U << 30;

    Extents(StridedExtents blocks) : blocks_(blocks) {}  // NOLINT: implicit by design
    Extents(std::vector<Extent> blocks) : blocks_(std::move(blocks)) {}  // NOLINT: as above
    Extents(const Extent& block)                                         // NOLINT: as above
        : Extents(StridedExtents{block.offset, block.bytes, 0, 1}) {}

    [[nodiscard]] std::uint64_t size() const;
    /// Null where they are listed.
    [[nodiscard]] const StridedExtents* strided() const {
        return std::get_if<StridedExtents>(&blocks_);
    }
    [[nodiscard]] Extent operator[](std::uint64_t index) const {
        if (const auto* const run = strided()) return {run->base + index * run->stride, run->bytes};
        return std::get<std::vector<Extent>>(blocks_)[index];
    }
    /// kInvalidArgument names the first block that is not within a memory of so many bytes, or says
    /// that there are more than kMost.
    [[nodiscard]] Status check_within(std::uint64_t bytes) const;

   private:
    std::variant<StridedExtents, std::vector<Extent>> blocks_;
};

/// Prepared once, posted as often as one likes.
class PCCL_API Plan {
   public:
    /// Bytes of one piece, at most: what can be given up no more once it is posted.
    static constexpr std::uint64_t kLongestPiece = 4 * kMiB;

    /// One side of a plan.
    struct Local {
        std::shared_ptr<LocalMemory> memory;
        Extents blocks;
    };
    struct Remote {
        RemoteMemory memory;
        Extents blocks;
    };
    /// kInvalidArgument names the first block that is out of bounds or unlike its counterpart.
    /// `longest` is that of one piece, 1 to kLongestPiece.
    static Result<std::shared_ptr<const Plan>> make(Local local, Remote remote,
                                                    std::uint64_t longest = kLongestPiece);

    [[nodiscard]] std::uint64_t size() const { return local_.blocks.size(); }
    [[nodiscard]] LocalMemory& local() const { return *local_.memory; }
    [[nodiscard]] const RemoteMemory& remote() const { return remote_.memory; }
    /// Of all blocks.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] std::uint64_t bytes_of(std::uint64_t index) const {
        return local_.blocks[index].bytes;
    }

    /// A place in a plan, or in a selection of its blocks.
    struct PlanCursor {
        std::uint64_t block = 0;
        std::uint64_t bytes = 0;  // of it that are done
    };
    struct PlanStep {
        transport::RmaPiece piece;
        PlanCursor after;
    };
    /// The next pieces of `indices`, or of all blocks where there are none, from `from` on: fills
    /// `steps` and returns how many. 0 at the end.
    std::size_t steps_from(PlanCursor from, std::span<const std::uint32_t> indices,
                           std::span<PlanStep> steps) const;
    /// All blocks from `from` on, where they need no list; nullopt elsewhere, and where they are
    /// better joined or cut.
    [[nodiscard]] std::optional<transport::RmaRun> run_from(const PlanCursor& from) const;

   private:
    Plan(Local local, Remote remote, std::uint64_t longest);
    /// Whether `next` continues `last` on both sides, and one piece may hold both.
    [[nodiscard]] bool joins(const transport::RmaPiece& last,
                             const transport::RmaPiece& next) const;

    const Local local_;
    const Remote remote_;
    const std::uint64_t longest_;
    const std::uint64_t bytes_;
};

}  // namespace pccl::p2p
