// SPDX-License-Identifier: Apache-2.0

// Reduction of several contributions in one pass over memory.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/collective/arithmetic/accumulator.h"

namespace pccl::arithmetic {

class Reduction {
   public:
    Reduction() = default;
    /// Prepares for contributions of `ranks` ranks: kAvg divides by that number. combine_for() must
    /// support the pair of `type` and `op`.
    Reduction(DataType type, ReduceOp op, int ranks)
        : element_bytes_(size_of(type)), accumulator_(type, op, ranks) {}

    /// Computes dst[i] as the reduction of the contributions' i-th elements in the order of
    /// `sources`, of which there must be at least two. Wide accumulators (accumulator.h) are
    /// rounded once. dst may be exactly one of the sources, and must not overlap them otherwise.
    void apply(std::byte* dst, std::span<const std::byte* const> sources, std::size_t count) const;
    [[nodiscard]] std::size_t element_bytes() const { return element_bytes_; }

   private:
    void apply_block(std::byte* dst, std::span<const std::byte* const> sources, std::size_t first,
                     std::size_t count) const;
    void accumulate_wide(std::byte* dst, std::span<const std::byte* const> sources,
                         std::size_t first, std::size_t count) const;

    std::size_t element_bytes_ = size_of(DataType::kFloat32);
    Accumulator accumulator_;
};

}  // namespace pccl::arithmetic
