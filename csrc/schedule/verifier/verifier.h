// SPDX-License-Identifier: Apache-2.0

// Verifier: proves, before a schedule runs, that it implements its collective.
//
// The verifier runs all ranks symbolically: a chunk's value is the expression of contributions it
// holds. It rejects a schedule in which a contribution is missing or counted twice, a step reads a
// chunk that was never written, a slice leaves its buffer, a FIFO has two lanes at one end, the
// ranks deadlock at the stated slots, or two steps access one chunk without an order between them
// (happens-before over lanes, dependencies, messages and slot reuse). The error names rank, lane,
// step and chunk.
#pragma once

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

struct Verdict {
    /// Longest chain of messages, each of which is sent after the previous one has arrived.
    int rounds = 0;
    /// Every rank that gets a reduced chunk gets it by the same sums, except for the order of the
    /// two operands of each.
    bool bit_identical = true;
    /// Every sum is made by one step of one rank, and forwarded to the others.
    bool sums_made_once = true;
    /// Supports blocks of different lengths (all_gather, reduce_scatter): each rank can derive the
    /// block, and so the length, of every chunk that it moves, also of chunks in scratch.
    bool takes_uneven = false;
};

/// Verifies one placement. kInvalidArgument names the place of the fault.
[[nodiscard]] PCCL_API Result<Verdict> verify(const Schedule& schedule, Placement placement);

/// Verifies every placement of the collective; the verdict is that of the out-of-place form.
[[nodiscard]] PCCL_API Result<Verdict> verify(const Schedule& schedule);

}  // namespace pccl::schedule
