// SPDX-License-Identifier: Apache-2.0

// Counters of a rank in one of its groups since the group was made: its collectives, its messages,
// the time in them and between them, and its waits for other ranks. Their history is kept in
// windows of time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/base/ids.h"
#include "csrc/collective/awaited.h"
#include "csrc/runtime/flight/usage_history.h"
#include "csrc/runtime/flight/usage_snapshot.h"

namespace pccl::runtime {

/// Thread-safe for readers. Callers of the other functions hold the group's lock.
class PCCL_API GroupUsage {
   public:
    /// Returns the network paths of the group; called under its lock.
    using PathReader = std::function<std::vector<PeerPath>()>;

    explicit GroupUsage(PathReader paths = {}) : paths_(std::move(paths)) {}

    struct Call {
        UsedPath path = UsedPath::kSharedMemory;
        std::size_t bytes = 0;
        TimePoint begun{};
        TimePoint ended{};
        Duration predicted{};  // zero: there is no prediction
    };

    void add_call(const Call& call);

    enum class Direction : bool { kSent, kReceived };
    struct Message {
        Direction direction = Direction::kSent;
        std::size_t bytes = 0;
        TimePoint begun{};
        TimePoint ended{};
    };
    void add_message(const Message& message);

    enum class Waiter : bool { kCollective, kMessage };
    /// Adds a time in which nothing moved, in equal parts to the ranks that were awaited.
    void add_wait(const AwaitedRanks& awaited, Duration waited,
                  Waiter waiter = Waiter::kCollective);

    /// Returns the counters, with at most `most` waits, and no paths.
    [[nodiscard]] UsageSnapshot snapshot(std::size_t most) const;
    /// Returns the windows that do not end before a time since 1970; the last one is not over.
    /// Requires the group's lock.
    [[nodiscard]] std::vector<UsageWindow> history(std::chrono::seconds from) const;

   private:
    struct Counters {
        std::atomic<std::uint64_t> calls{0};
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<Duration> taken{};
        std::atomic<Duration> predicted{};
    };
    struct MessageCounters {
        std::atomic<std::uint64_t> calls{0};
        std::atomic<std::uint64_t> bytes{0};
    };
    using Waits = std::map<std::pair<Rank, Awaited::Act>, Duration>;

    /// Begins another window if the one in which the last operation ended is over.
    void turn_window_at(TimePoint now) {
        if (now >= window_end_) [[unlikely]]
            turn_window(now);
    }
    void turn_window(TimePoint now);
    /// Returns all counters, and the paths.
    [[nodiscard]] UsageSnapshot all() const;

    const PathReader paths_;
    std::array<Counters, 2> collectives_{};
    std::atomic<Duration> between_{};
    TimePoint last_end_{};
    std::array<MessageCounters, 2> messages_{};  // by Direction
    std::atomic<Duration> under_way_{};
    TimePoint last_message_end_{};
    TimePoint window_end_{};
    std::chrono::seconds window_begin_{};  // since 1970
    UsageSnapshot before_window_;
    UsageHistory history_;
    mutable std::mutex mutex_;
    std::array<Waits, 2> waits_;  // by Waiter; guarded by mutex_
};

}  // namespace pccl::runtime
