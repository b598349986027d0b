// A reduction of many contributions in one pass over memory.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/collective/arithmetic/arithmetic.h"

namespace pccl::arithmetic {

class Reduction {
   public:
    Reduction() = default;
    /// For contributions of `ranks` ranks: kAvg divides by that. `type` and `op` must be a pair
    /// that combine_for() knows.
    Reduction(DataType type, ReduceOp op, int ranks);

    /// dst[i] = the contributions' i-th elements reduced in the order of `sources`, at least two.
    /// Halves accumulate in float32 and are rounded once. dst may be exactly one of the sources,
    /// and may not overlap them otherwise.
    void apply(std::byte* dst, std::span<const std::byte* const> sources, std::size_t count) const;
    [[nodiscard]] std::size_t element_bytes() const { return size_of(type_); }

   private:
    void apply_block(std::byte* dst, std::span<const std::byte* const> sources, std::size_t first,
                     std::size_t count) const;
    void accumulate_halves(std::byte* dst, std::span<const std::byte* const> sources,
                           std::size_t first, std::size_t count) const;

    DataType type_ = DataType::kFloat32;
    Combine combine_ = nullptr;
    int divisor_ = 1;
    bool widens_ = false;
};

}  // namespace pccl::arithmetic
