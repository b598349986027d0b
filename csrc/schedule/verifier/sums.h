// In which order a schedule adds what its ranks contribute.
#pragma once

#include <compare>
#include <string>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// How input chunks [first, last] are summed: "(1+2)+0" names ranks. The two operands of a sum may
/// be swapped, which changes no bit.
struct SumOrder {
    int first = 0;
    int last = 0;
    std::string order;
    auto operator<=>(const SumOrder&) const = default;
};

/// Of each input chunk, as the first rank that gets its sum makes it; where Verdict::bit_identical,
/// as all do. Nothing for collectives that reduce nothing. `schedule` must have been verified.
[[nodiscard]] PCCL_API Result<std::vector<SumOrder>> sums_of(const Schedule& schedule);

}  // namespace pccl::schedule
