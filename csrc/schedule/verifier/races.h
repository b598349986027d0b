// SPDX-License-Identifier: Apache-2.0

// Race check: steps that access one chunk without an order between them.
#pragma once

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {

/// Checks that any two steps of a rank that access the same chunk, at least one of them writing,
/// are ordered by happens-before. `order` is a valid order of the events.
[[nodiscard]] Status check_races(const EventGraph& graph, const std::vector<EventId>& order,
                                 const MemoryMap& memory);

}  // namespace pccl::schedule
