// SPDX-License-Identifier: Apache-2.0

// Peak memory of a schedule besides input and output.
#pragma once

#include <vector>

#include "csrc/schedule/simulator/clockwork.h"

namespace pccl::schedule {

/// Returns Replay::peak_chunks.
[[nodiscard]] long long peak_chunks(const StepGraph& graph, const std::vector<Times>& times);

}  // namespace pccl::schedule
