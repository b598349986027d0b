// Runs all ranks on expressions and compares what they end with with what the collective promises.
#pragma once

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {

/// Verdict::bit_identical. Errors: a step reads what was never written; an output chunk that is not
/// exactly what it must be. Needs a schedule without races: then every order gives the same result.
[[nodiscard]] Result<bool> check_results(const EventGraph& graph, const std::vector<EventId>& order,
                                         const MemoryMap& memory);

}  // namespace pccl::schedule
