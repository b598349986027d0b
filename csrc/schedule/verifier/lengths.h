// Whether a schedule works for blocks of different lengths.
#pragma once

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/postcondition.h"

namespace pccl::schedule {

/// Whether each rank finds the length of every chunk that it moves as moved_blocks() has it, so
/// that sender and receiver of a message agree. `holdings` of a schedule that is right.
[[nodiscard]] bool finds_lengths(const EventGraph& graph, const Holdings& holdings);

}  // namespace pccl::schedule
