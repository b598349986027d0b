// Steps that touch one chunk without an order between them.
#pragma once

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {

/// Any two steps of a rank that touch the same chunk, one of them to write it, must be ordered by
/// happens-before. `order` is one in which the events can happen.
[[nodiscard]] Status check_races(const EventGraph& graph, const std::vector<EventId>& order,
                                 const MemoryMap& memory);

}  // namespace pccl::schedule
