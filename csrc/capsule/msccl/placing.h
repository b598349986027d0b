// Where the chunks that an MSCCL program names lie in a schedule.
//
// Programs of MSCCL may write their input, and take input and output for one memory. Schedules do
// neither, and must be right whether the two are one or not; so such a program works on a copy: in
// the output where that has room for it, else in scratch, from where the result is copied back.
//
// Chunks of a block differ in length, so a chunk keeps its index in a block wherever it goes, in
// scratch too. MSCCL's scratch has no such rule: its chunks are given other numbers.
#pragma once

#include <optional>
#include <vector>

#include "csrc/capsule/msccl/algo.h"
#include "csrc/schedule/schedule.h"

namespace pccl::capsule::msccl {

enum class Working : std::uint8_t { kDirectly, kInOutput, kInScratch };

/// The ways to try, the cheapest first.
[[nodiscard]] std::vector<Working> ways_of(const Algo& algo);

class Placing {
   public:
    /// kUnsupported names the place of a chunk of scratch that holds parts of blocks with other
    /// indices; kInvalidArgument that of a chunk that there is not.
    [[nodiscard]] static Result<Placing> make(const Algo& algo, Working working);

    [[nodiscard]] schedule::Slices slices(Rank rank, const Span& span, int count) const;
    [[nodiscard]] int scratch_chunks(Rank rank) const {
        return scratch_chunks_[static_cast<std::size_t>(rank)];
    }
    /// To be copied before all else, and after; nothing where the program works directly.
    struct Copy {
        schedule::Slices src{};
        schedule::Slices dst{};
    };
    [[nodiscard]] std::optional<Copy> copy_in(Rank rank) const;
    [[nodiscard]] std::optional<Copy> copy_out(Rank rank) const;

   private:
    Placing(const Algo& algo, Working working) : algo_(&algo), working_(working) {}

    [[nodiscard]] int ranks() const { return static_cast<int>(algo_->gpus.size()); }
    [[nodiscard]] int chunks_of(schedule::Buffer buffer) const;
    [[nodiscard]] bool works_on_one_buffer() const;
    /// One chunk; of scratch, unless the program works there, with the number that MSCCL gives it.
    [[nodiscard]] schedule::Slice place(Rank rank, schedule::Buffer buffer, int chunk) const;
    [[nodiscard]] Status check(const Step& step, Rank rank, const Span& span) const;
    [[nodiscard]] Status find_indices();
    Status number_scratch();

    const Algo* algo_;
    Working working_;
    std::vector<std::vector<int>> index_;    // in a block, of MSCCL's chunks of scratch, by rank
    std::vector<std::vector<int>> numbers_;  // that they are given
    std::vector<int> scratch_chunks_;
};

}  // namespace pccl::capsule::msccl
