// SPDX-License-Identifier: Apache-2.0

// Quantities of the closed forms; names as in the papers.
#pragma once

#include <algorithm>
#include <bit>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

[[nodiscard]] inline int floor_log2(int n) {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
}
[[nodiscard]] inline int ceil_log2(int n) {
    return static_cast<int>(std::bit_width(static_cast<unsigned>(n) - 1));
}

/// Returns the largest power of two <= n.
[[nodiscard]] inline int floor_power(int n) {
    return static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
}

/// Cost in blocks instead of bytes.
struct BlockCost {
    int rounds = 0;
    long long messages = 0;
    double moved = 0;
    double reduced = 0;
};

/// Sizes of a shape with at least two ranks.
struct Sizes {
    explicit Sizes(const Shape& shape)
        : kind(shape.kind),
          n(shape.ranks),
          root(shape.root),
          chunks(shape.chunks),
          aggregation(shape.aggregation),
          log(floor_log2(n)),
          power(1 << log),
          pairs(n - power),
          folds(pairs > 0 ? 1 : 0) {}

    [[nodiscard]] long long others() const { return n - 1; }
    /// Returns `blocks` if this collective reduces, or else 0.
    [[nodiscard]] double if_reduced(double blocks) const { return reduces(kind) ? blocks : 0; }

    CollectiveKind kind;
    int n;
    Rank root;
    int chunks;
    int aggregation;
    int log;    // floor(log2 n)
    int power;  // the largest power of two <= n
    int pairs;  // fold.h: ranks that sit out
    int folds;  // 1 if any rank sits out, else 0
};

}  // namespace pccl::schedule
