// SPDX-License-Identifier: Apache-2.0

// Sets of up to 32 ranks.
#pragma once

#include <cstdint>

#include "csrc/base/ids.h"

namespace pccl {

/// Bit r is set for rank r.
using RankBits = std::uint32_t;

[[nodiscard]] constexpr bool has_rank(RankBits ranks, Rank rank) {
    return (ranks >> rank & 1) != 0;
}
[[nodiscard]] constexpr RankBits bit_of(Rank rank) { return RankBits{1} << rank; }

}  // namespace pccl
