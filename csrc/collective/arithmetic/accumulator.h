// SPDX-License-Identifier: Apache-2.0

// Accumulator type of a reduction.
//
// Sums of 16-bit floats would be rounded at every hop, and averages of integers would wrap before
// the division. These accumulate in a wider type and are rounded once, at the end. All others
// accumulate in their own type.
#pragma once

#include <cstddef>

#include "csrc/collective/arithmetic/arithmetic.h"

namespace pccl::arithmetic {

class Accumulator {
   public:
    Accumulator() = default;
    /// Prepares for contributions of `ranks` ranks, at most 65535: kAvg divides by that number.
    /// combine_for() must support the pair of `type` and `op`. The sum of two 16-bit floats needs
    /// no wider type: it is computed in float32 and rounded once anyway.
    Accumulator(DataType type, ReduceOp op, int ranks);

    /// Returns whether the accumulator is wider than the type itself.
    [[nodiscard]] static bool is_wide_for(DataType type, ReduceOp op, int ranks);
    [[nodiscard]] bool is_wide() const { return is_wide_; }
    /// Returns the bytes of one partial result.
    [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }
    /// Returns the function that adds partial results.
    [[nodiscard]] Combine combine() const { return combine_; }

    /// Converts single contributions to partial results, if it is wide. dst and src must not
    /// overlap.
    void widen(std::byte* dst, const std::byte* src, std::size_t count) const;
    /// Converts partial results to elements of the type, and overwrites them. If it is wide, dst
    /// and partial must not overlap; otherwise they must be equal.
    void finish(std::byte* dst, std::byte* partial, std::size_t count) const;
    /// Applies arithmetic::unify_nans() to partial results.
    void unify_nans(std::byte* partial, std::size_t count) const;

   private:
    DataType type_ = DataType::kFloat32;
    int divisor_ = 1;
    bool is_wide_ = false;
    std::size_t element_bytes_ = size_of(DataType::kFloat32);
    Combine combine_ = nullptr;
};

}  // namespace pccl::arithmetic
