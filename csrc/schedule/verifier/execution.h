// SPDX-License-Identifier: Apache-2.0

// Symbolic execution of all ranks on expressions.
#pragma once

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"
#include "csrc/schedule/verifier/postcondition.h"

namespace pccl::schedule {

/// Returns the final contents of all ranks. Requires a schedule without races, for which every
/// order gives the same result. Error: a step reads a chunk that was never written.
[[nodiscard]] Result<Holdings> run_on_expressions(const EventGraph& graph,
                                                  const std::vector<EventId>& order,
                                                  const MemoryMap& memory);

}  // namespace pccl::schedule
