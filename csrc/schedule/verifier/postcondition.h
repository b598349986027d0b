// What each collective promises, and whether the ranks hold it.
#pragma once

#include <vector>

#include "csrc/schedule/verifier/event_graph.h"
#include "csrc/schedule/verifier/expressions.h"
#include "csrc/schedule/verifier/memory_map.h"

namespace pccl::schedule {

/// The memory of all ranks, by place (MemoryMap).
struct Holdings {
    Expressions expressions;
    std::vector<Expression> held;
    std::vector<EventId> writer;  // who wrote it last; kNoEvent: nobody
    /// Whose block each chunk is of that a step moves, event by event; empty but for all_gather and
    /// reduce_scatter.
    std::vector<Rank> moved{};
};

/// Verdict::bit_identical. The error blames the step that last wrote a wrong output chunk, or the
/// one that added a contribution a second time.
[[nodiscard]] Result<bool> check_postcondition(const EventGraph& graph, const MemoryMap& memory,
                                               const Holdings& holdings);

}  // namespace pccl::schedule
