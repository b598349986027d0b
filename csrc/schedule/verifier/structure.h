// What can be said of a schedule step by step: everything it names exists and fits.
#pragma once

#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {

/// Ranks, root, chunks and slots are in range and there is a program for each rank, none too large
/// to be verified. All that follows relies on it.
[[nodiscard]] Status check_shape(const Schedule& schedule);

/// Each step has the operands of its action, its slices lie in buffers that its rank has and may
/// write, its peers are ranks, and what it waits for is a step.
[[nodiscard]] Status check_steps(const Schedule& schedule, const MemoryMap& memory);

}  // namespace pccl::schedule
