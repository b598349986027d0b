// What programs move, counted step by step: the cost of schedules that have no closed form.
#pragma once

#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Of the rank with the most; of one that sends more than it receives, or the other way round, the
/// larger counts.
struct StepCounts {
    long long messages = 0;
    long long chunks_moved = 0;
    long long chunks_reduced = 0;
    int longest_message = 1;  // in chunks

    void include(const Program& program);
};

/// For blocks of one byte, of `chunks` chunks.
[[nodiscard]] Cost cost_of(const StepCounts& most, long long rounds, int chunks);
[[nodiscard]] Cost scaled(Cost a_byte, double block_bytes);

}  // namespace pccl::schedule
