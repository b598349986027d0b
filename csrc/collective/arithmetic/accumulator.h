// What a reduction keeps its partial results in.
//
// Sums of halves would be rounded at every hop, and averages of integers would wrap before they are
// divided: these accumulate in a wider type, and are rounded once, at the end. All others
// accumulate in the type that they have.
#pragma once

#include <cstddef>

#include "csrc/collective/arithmetic/arithmetic.h"

namespace pccl::arithmetic {

class Accumulator {
   public:
    Accumulator() = default;
    /// For contributions of `ranks` ranks, at most 65535: kAvg divides by that. `type` and `op`
    /// must be a pair that combine_for() takes. The sum of two halves needs nothing wider: it is
    /// computed in float32 and rounded once anyway.
    Accumulator(DataType type, ReduceOp op, int ranks);

    /// Whether that is wider than the type itself.
    [[nodiscard]] static bool is_wide_for(DataType type, ReduceOp op, int ranks);
    [[nodiscard]] bool is_wide() const { return is_wide_; }
    /// Of one partial result.
    [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }
    /// Adds partial results.
    [[nodiscard]] Combine combine() const { return combine_; }

    /// Where it is wide: partial results of single contributions. dst and src may not overlap.
    void widen(std::byte* dst, const std::byte* src, std::size_t count) const;
    /// Elements of the type it accumulates from partial results, which are used up. Where it is
    /// wide, dst and partial may not overlap; else they are the same.
    void finish(std::byte* dst, std::byte* partial, std::size_t count) const;
    /// unify_nans() of partial results.
    void unify_nans(std::byte* partial, std::size_t count) const;

   private:
    DataType type_ = DataType::kFloat32;
    int divisor_ = 1;
    bool is_wide_ = false;
    std::size_t element_bytes_ = size_of(DataType::kFloat32);
    Combine combine_ = nullptr;
};

}  // namespace pccl::arithmetic
