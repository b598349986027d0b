// SPDX-License-Identifier: Apache-2.0

// Checks of a schedule step by step: every operand exists and fits.
#pragma once

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {

/// Checks that ranks, root, chunks and slots are in range, and that there is a program for each
/// rank, none of them too large to verify. All later checks rely on this.
[[nodiscard]] Status check_shape(const Schedule& schedule);

/// Checks that each step has the operands of its action, its slices lie in buffers that its rank
/// has and may write, its peers are ranks, and its dependencies are steps.
[[nodiscard]] Status check_steps(const Schedule& schedule, const MemoryMap& memory);

}  // namespace pccl::schedule
