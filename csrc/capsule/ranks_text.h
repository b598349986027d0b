// SPDX-License-Identifier: Apache-2.0

// Text form of numbers of ranks.
#pragma once

#include <string>
#include <vector>

namespace pccl::capsule {

/// Returns "2..4 8" for ascending numbers, with runs of consecutive numbers shortened.
[[nodiscard]] std::string ranks_text(const std::vector<int>& ranks);

}  // namespace pccl::capsule
