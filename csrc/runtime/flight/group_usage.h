// SPDX-License-Identifier: Apache-2.0

// Counters of a rank in one of its groups since the group was made: its collectives, the time in
// them and between them, and its waits for other ranks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/base/ids.h"
#include "csrc/collective/awaited.h"
#include "csrc/sys/socket/path_counters.h"

namespace pccl::runtime {

/// Path of a collective's data.
enum class UsedPath : std::uint8_t { kSharedMemory, kLinks };

struct CollectiveCounts {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;  // of the longer of the caller's two buffers
    Duration taken{};         // without the time in which calls before it ran
    Duration predicted{};     // by the cost model; a call without a prediction counts as taken
};

struct RankWait {
    Awaited awaited;
    Duration waited{};
};

/// Network path to a peer.
struct PeerPath {
    Rank peer = kNoRank;
    sys::PathCounters counters{};
};

struct UsageSnapshot {
    std::array<CollectiveCounts, 2> collectives{};  // by UsedPath
    Duration between{};                             // from the end of one call to the next call
    std::vector<RankWait> waits{};                  // longest first
    std::vector<PeerPath> paths{};                  // those that carried most first
};

/// Thread-safe for readers. Callers of the other functions hold the group's lock.
class PCCL_API GroupUsage {
   public:
    struct Call {
        UsedPath path = UsedPath::kSharedMemory;
        std::size_t bytes = 0;
        TimePoint begun{};
        TimePoint ended{};
        Duration predicted{};  // zero: there is no prediction
    };

    void add_call(const Call& call);
    /// Adds a time in which nothing moved, in equal parts to the ranks that were awaited.
    void add_wait(const AwaitedRanks& awaited, Duration waited);

    /// Returns the counters, with at most `most` waits, and no paths.
    [[nodiscard]] UsageSnapshot snapshot(std::size_t most) const;

   private:
    struct Counters {
        std::atomic<std::uint64_t> calls{0};
        std::atomic<std::uint64_t> bytes{0};
        std::atomic<Duration> taken{};
        std::atomic<Duration> predicted{};
    };
    using Waits = std::map<std::pair<Rank, Awaited::Act>, Duration>;

    std::array<Counters, 2> collectives_{};
    std::atomic<Duration> between_{};
    TimePoint last_end_{};
    mutable std::mutex mutex_;
    Waits waits_;  // guarded by mutex_
};

}  // namespace pccl::runtime
