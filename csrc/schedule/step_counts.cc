// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/step_counts.h"

#include <algorithm>

namespace pccl::schedule {
namespace {

bool reduces_memory(Action action) {
    return action == Action::kReduce || action == Action::kRecvReduce ||
           action == Action::kRecvReduceSend || action == Action::kRecvReduceCopySend;
}

/// Counts of one direction.
struct Moved {
    long long messages = 0;
    long long chunks = 0;

    void add(const PeerPort& port, int length) {
        if (!port.is_used()) return;
        ++messages;
        chunks += length;
    }
};

}  // namespace

void StepCounts::include(const Program& program) {
    Moved sent;
    Moved received;
    long long reduced = 0;
    for (const Lane& lane : program.lanes)
        for (const Step& step : lane) {
            const int chunks = count_of(step);
            sent.add(step.to, chunks);
            received.add(step.from, chunks);
            if (reduces_memory(step.action)) reduced += chunks;
            if (step.to.is_used() || step.from.is_used())
                longest_message = std::max(longest_message, chunks);
        }
    messages = std::max({messages, sent.messages, received.messages});
    chunks_moved = std::max({chunks_moved, sent.chunks, received.chunks});
    chunks_reduced = std::max(chunks_reduced, reduced);
}

Cost cost_of(const StepCounts& most, long long rounds, int chunks) {
    return {.rounds = rounds,
            .messages = most.messages,
            .bytes_sent = static_cast<double>(most.chunks_moved) / chunks,
            .bytes_reduced = static_cast<double>(most.chunks_reduced) / chunks};
}

Cost scaled(Cost a_byte, double block_bytes) {
    a_byte.bytes_sent *= block_bytes;
    a_byte.bytes_reduced *= block_bytes;
    return a_byte;
}

}  // namespace pccl::schedule
