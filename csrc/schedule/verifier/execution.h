// Runs all ranks on expressions.
#pragma once

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"
#include "csrc/schedule/verifier/postcondition.h"

namespace pccl::schedule {

/// What all ranks hold at the end. Errors: a step reads what was never written. Needs a schedule
/// without races: then every order gives the same result.
[[nodiscard]] Result<Holdings> run_on_expressions(const EventGraph& graph,
                                                  const std::vector<EventId>& order,
                                                  const MemoryMap& memory);

}  // namespace pccl::schedule
