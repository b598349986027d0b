// SPDX-License-Identifier: Apache-2.0

// Events for which thread blocks of a plan wait.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// Event for which a thread block of `gpu` waits.
struct PlanEvent {
    enum class EventType : std::uint8_t { kSignal, kSemaphore, kBarrier, kPacket };
    EventType kind{};
    Rank gpu = 0;
    int a = 0;  // peer; semaphore; barrier; buffer
    int b = 0;  // type of the channel; index of the chunk
    int c = 0;  // index of the channel among those of its type
    auto operator<=>(const PlanEvent&) const = default;

    static PlanEvent signal(Rank to, Rank from, const PlanChannel& channel) {
        return {EventType::kSignal, to, from, static_cast<int>(channel.type), channel.nth};
    }
    static PlanEvent semaphore(Rank gpu, int id) { return {EventType::kSemaphore, gpu, id}; }
    static PlanEvent barrier(Rank gpu, int id) { return {EventType::kBarrier, gpu, id}; }
    static PlanEvent packet(const Chunks& chunks, int i) {
        return {EventType::kPacket, chunks.rank, static_cast<int>(chunks.buffer), chunks.index + i};
    }
};

/// Returns the signals, and releases of semaphores, that an operation of `gpu` consumes.
[[nodiscard]] std::vector<PlanEvent> awaited_by(const PlanOperation& operation, Rank gpu);

/// Returns the events that an operation of `gpu` causes.
[[nodiscard]] std::vector<PlanEvent> events_of(const PlanOperation& operation, Rank gpu);

/// Thread block that waits at an operation.
struct Stalled {
    At at{};
    PlanEvent event{};
    int turns = 0;  // number of earlier occurrences of the event
};

/// Explains why a plan deadlocks. Names the first thread block whose event no remaining operation
/// can cause; if there is none, one of the thread blocks that wait for each other.
[[nodiscard]] Status explain_stall(const MscclppPlan& plan,
                                   const std::map<std::size_t, Stalled>& stalled);

}  // namespace pccl::capsule::mscclpp
