// What an algorithm costs, without making its programs: the numbers a selector weighs.
#pragma once

#include "csrc/schedule/generators/generators.h"

namespace pccl::schedule {

/// Of a rank that sends more than it receives, or the other way round, the larger counts; over all
/// ranks, the largest does.
struct Cost {
    /// Messages on the critical path, each sent after the one before it has arrived
    /// (Verdict::rounds). Chunks that follow each other through a pipeline do not count; `messages`
    /// does.
    int rounds = 0;
    /// Sent, or received, by the rank with the most.
    long long messages = 0;
    /// In the messages that a rank sends, or receives.
    double bytes_sent = 0;
    /// Incoming, or from memory, and added to as many other bytes.
    double bytes_reduced = 0;
};

/// Closed forms, at most log2 n additions: cheap enough for every new size. `block_bytes` is the
/// size of a block as blocks() counts them: the whole vector for all_reduce, broadcast and reduce;
/// what one rank contributes or gets for the others. Needs a shape that generate() accepts.
[[nodiscard]] PCCL_API Cost cost(Algorithm algorithm, const Shape& shape, double block_bytes);

}  // namespace pccl::schedule
