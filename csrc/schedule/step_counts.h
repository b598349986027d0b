// SPDX-License-Identifier: Apache-2.0

// Step counts of programs: the cost of schedules without a closed form.
#pragma once

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Maxima over ranks; for each rank, the larger of its sends and receives counts.
struct StepCounts {
    long long messages = 0;
    long long chunks_moved = 0;
    long long chunks_reduced = 0;
    int longest_message = 1;  // in chunks

    void include(const Program& program);
};

/// Returns the cost for blocks of one byte, of `chunks` chunks.
[[nodiscard]] Cost cost_of(const StepCounts& most, long long rounds, int chunks);
[[nodiscard]] Cost scaled(Cost a_byte, double block_bytes);

}  // namespace pccl::schedule
