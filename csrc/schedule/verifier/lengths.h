// SPDX-License-Identifier: Apache-2.0

// Check for blocks of different lengths.
#pragma once

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/postcondition.h"

namespace pccl::schedule {

/// Returns whether moved_blocks() gives each rank the length of every chunk that it moves, so that
/// sender and receiver of a message agree. `holdings` are those of a correct schedule.
[[nodiscard]] bool finds_lengths(const EventGraph& graph, const Holdings& holdings);

}  // namespace pccl::schedule
