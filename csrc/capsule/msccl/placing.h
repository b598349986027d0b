// SPDX-License-Identifier: Apache-2.0

// Placement of the chunks of an MSCCL program in a schedule.
//
// Programs of MSCCL may write their input, and treat input and output as one memory. Schedules do
// neither, and must be correct both in place and out of place. Such a program therefore works on a
// copy: in the output if that is large enough, or else in scratch, from which the result is copied
// back.
//
// Chunks of a block differ in length, so a chunk keeps its index within a block in every place,
// including scratch. MSCCL's scratch has no such rule: its chunks are renumbered.
#pragma once

#include <optional>
#include <vector>

#include "csrc/capsule/msccl/algo.h"
#include "csrc/schedule/schedule.h"

namespace pccl::capsule::msccl {

enum class Working : std::uint8_t { kDirectly, kInOutput, kInScratch };

/// Returns the placements to try, the cheapest first.
[[nodiscard]] std::vector<Working> ways_of(const Algo& algo);

class Placing {
   public:
    /// Makes a placement. kUnsupported: a chunk of scratch holds parts of blocks with different
    /// indices. kInvalidArgument: a chunk does not exist. Both contain the place in the file.
    [[nodiscard]] static Result<Placing> make(const Algo& algo, Working working);

    [[nodiscard]] schedule::Slices slices(Rank rank, const ChunkSpan& span, int count) const;
    [[nodiscard]] int scratch_chunks(Rank rank) const {
        return scratch_chunks_[static_cast<std::size_t>(rank)];
    }
    /// Copy before or after all other steps; absent if the program works directly.
    struct OuterCopy {
        schedule::Slices src{};
        schedule::Slices dst{};
    };
    [[nodiscard]] std::optional<OuterCopy> copy_in(Rank rank) const;
    [[nodiscard]] std::optional<OuterCopy> copy_out(Rank rank) const;

   private:
    Placing(const Algo& algo, Working working) : algo_(&algo), working_(working) {}

    [[nodiscard]] int ranks() const { return static_cast<int>(algo_->gpus.size()); }
    [[nodiscard]] int chunks_of(schedule::Buffer buffer) const;
    [[nodiscard]] bool works_on_one_buffer() const;
    /// Returns the place of one chunk. Chunks of scratch have MSCCL's numbers, unless the program
    /// works in scratch.
    [[nodiscard]] schedule::Slice place(Rank rank, schedule::Buffer buffer, int chunk) const;
    [[nodiscard]] Status check(const AlgoStep& step, Rank rank, const ChunkSpan& span) const;
    [[nodiscard]] Status find_indices();
    Status number_scratch();

    const Algo* algo_;
    Working working_;
    std::vector<std::vector<int>> index_;    // in a block, of MSCCL's chunks of scratch, by rank
    std::vector<std::vector<int>> numbers_;  // new numbers of these chunks
    std::vector<int> scratch_chunks_;
};

}  // namespace pccl::capsule::msccl
