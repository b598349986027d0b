// SPDX-License-Identifier: Apache-2.0

// Order in which a schedule adds the contributions of its ranks.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// Summation order of input chunks [first, last]; "(1+2)+0" names ranks. The two operands of a sum
/// may be swapped, which changes no bit.
struct SumOrder {
    int first = 0;
    int last = 0;
    std::string order;
    auto operator<=>(const SumOrder&) const = default;
};

/// Returns the order of each input chunk, as computed by the first rank that gets its sum; if
/// Verdict::bit_identical, all ranks use it. Empty for collectives without reduction. `schedule`
/// must have been verified.
[[nodiscard]] PCCL_API Result<std::vector<SumOrder>> sums_of(const Schedule& schedule);

}  // namespace pccl::schedule
