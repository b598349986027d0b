// SPDX-License-Identifier: Apache-2.0

// Postcondition of each collective, and its check.
#pragma once

#include <vector>

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/expressions.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {

/// Memory of all ranks, by place (MemoryMap).
struct Holdings {
    Expressions expressions;
    std::vector<Expression> held;
    std::vector<EventId> writer;  // last step that wrote it; kNoEvent: none
    /// Block of each chunk that a step moves, event by event; empty except for all_gather and
    /// reduce_scatter.
    std::vector<Rank> moved{};
};

/// Checks the result; returns Verdict::bit_identical. The error names the step that last wrote a
/// wrong output chunk, or the step that added a contribution a second time.
[[nodiscard]] Result<bool> check_postcondition(const EventGraph& graph, const MemoryMap& memory,
                                               const Holdings& holdings);

}  // namespace pccl::schedule
