// How much a schedule holds at a time, besides input and output.
#pragma once

#include <vector>

#include "csrc/schedule/simulator/clockwork.h"

namespace pccl::schedule {

/// Replay::peak_chunks.
[[nodiscard]] long long peak_chunks(const StepGraph& graph, const std::vector<Times>& times);

}  // namespace pccl::schedule
