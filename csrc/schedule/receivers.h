// SPDX-License-Identifier: Apache-2.0

// Receivers of a rank's messages.
#pragma once

#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// Returns the receivers in ascending order, each once.
[[nodiscard]] PCCL_API std::vector<Rank> receivers_of(const Program& program);

}  // namespace pccl::schedule
