// SPDX-License-Identifier: Apache-2.0

// Checks of the verifier, in their order: the structure of the steps (structure.cc), races between
// steps (races.cc), and the data, by symbolic execution of all ranks on expressions (execution.cc).
#pragma once

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"
#include "csrc/schedule/verifier/postcondition.h"

namespace pccl::schedule {

/// Checks that ranks, root, chunks and slots are in range, and that there is a program for each
/// rank, none of them too large to verify. All later checks rely on this.
[[nodiscard]] Status check_shape(const Schedule& schedule);

/// Checks that each step has the operands of its action, its slices lie in buffers that its rank
/// has and may write, its peers are ranks, and its dependencies are steps.
[[nodiscard]] Status check_steps(const Schedule& schedule, const MemoryMap& memory);

/// Checks that any two steps of a rank that access the same chunk, at least one of them writing,
/// are ordered by happens-before. `order` is a valid order of the events.
[[nodiscard]] Status check_races(const EventGraph& graph, const std::vector<EventId>& order,
                                 const MemoryMap& memory);

/// Returns the final contents of all ranks. Requires a schedule without races, for which every
/// order gives the same result. Error: a step reads a chunk that was never written.
[[nodiscard]] Result<Holdings> run_on_expressions(const EventGraph& graph,
                                                  const std::vector<EventId>& order,
                                                  const MemoryMap& memory);

}  // namespace pccl::schedule
