// Proves that a schedule does what its collective promises, before it runs.
//
// The verifier runs all ranks symbolically: a chunk's value is the expression of contributions it
// holds. It refuses a schedule in which a contribution is missing or counted twice, a step reads
// what was never written, a slice leaves its buffer, a FIFO has two lanes at one end, the ranks
// deadlock at the stated slots, or two steps touch one chunk without an order between them
// (happens-before over lanes, dependencies, messages and slot reuse). The error names rank, lane,
// step and chunk.
#pragma once

#include "csrc/base/status.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

struct Verdict {
    /// The longest chain of messages each of which is sent after the one before it has arrived.
    int rounds = 0;
    /// Every rank that gets a reduced chunk gets it by the same sums, but for the order of the two
    /// operands of each.
    bool bit_identical = true;
    /// Every sum is made by one step of one rank, and passed on to whoever else gets it.
    bool sums_made_once = true;
    /// Works for blocks of different lengths (all_gather, reduce_scatter): each rank can tell whose
    /// block, and so how long, every chunk is that it moves, also one in scratch.
    bool takes_uneven = false;
};

/// kInvalidArgument with the place of the fault, or what was learnt on the way.
[[nodiscard]] PCCL_API Result<Verdict> verify(const Schedule& schedule, Placement placement);

/// In every placement that its collective has; the verdict is that of two memories.
[[nodiscard]] PCCL_API Result<Verdict> verify(const Schedule& schedule);

}  // namespace pccl::schedule
