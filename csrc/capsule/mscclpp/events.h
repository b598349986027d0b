// What thread blocks of a plan wait for.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "csrc/capsule/mscclpp/plan.h"

namespace pccl::capsule::mscclpp {

/// An event that a thread block of `gpu` waits for.
struct Event {
    enum class Kind : std::uint8_t { kSignal, kSemaphore, kBarrier, kPacket };
    Kind kind{};
    Rank gpu = 0;
    int a = 0;  // peer; semaphore; barrier; buffer
    int b = 0;  // type of the channel; index of the chunk
    int c = 0;  // which channel of its type
    auto operator<=>(const Event&) const = default;

    static Event signal(Rank to, Rank from, const Channel& channel) {
        return {Kind::kSignal, to, from, static_cast<int>(channel.type), channel.nth};
    }
    static Event semaphore(Rank gpu, int id) { return {Kind::kSemaphore, gpu, id}; }
    static Event barrier(Rank gpu, int id) { return {Kind::kBarrier, gpu, id}; }
    static Event packet(const Chunks& chunks, int i) {
        return {Kind::kPacket, chunks.rank, static_cast<int>(chunks.buffer), chunks.index + i};
    }
};

/// Lists the signals, and releases of semaphores, that an operation of `gpu` takes.
[[nodiscard]] std::vector<Event> awaited_by(const Operation& operation, Rank gpu);

/// Lists the events that an operation of `gpu` causes.
[[nodiscard]] std::vector<Event> events_of(const Operation& operation, Rank gpu);

/// A thread block that waits at an operation.
struct Stalled {
    At at{};
    Event event{};
    int turns = 0;  // how often the event came before
};

/// Explains why a plan stops before its end, with thread blocks in their order: names the first
/// that waits for what no operation lets happen any more; else one of those that wait for each
/// other.
[[nodiscard]] Status explain_stall(const Plan& plan, const std::map<std::size_t, Stalled>& stalled);

}  // namespace pccl::capsule::mscclpp
