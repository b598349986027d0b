// SPDX-License-Identifier: Apache-2.0

// Values of a rank's counters in one of its groups, since the group was made or over a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/base/ids.h"
#include "csrc/collective/awaited.h"
#include "csrc/sys/cpu/cpu_times.h"
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

/// Messages in one direction.
struct MessageTotals {
    std::uint64_t calls = 0;
    std::uint64_t bytes = 0;
};

struct MessageUsage {
    MessageTotals sent{};
    MessageTotals received{};
    Duration under_way{};           // time with at least one message that had not ended
    std::vector<RankWait> waits{};  // while no collective ran; longest first
};

/// Network path to a peer.
struct PeerPath {
    Rank peer = kNoRank;
    std::string interface{};  // of this host; empty: it has none with the connection's address
    sys::PathCounters counters{};
};

struct UsageSnapshot {
    std::array<CollectiveCounts, 2> collectives{};  // by UsedPath
    Duration between{};                             // from the end of one call to the next call
    std::vector<RankWait> waits{};                  // in collectives; longest first
    MessageUsage messages{};
    std::vector<PeerPath> paths{};  // those that carried data longest first
    sys::CpuTimes cpu{};            // of the whole process
};

/// Returns the number of collectives.
[[nodiscard]] std::uint64_t calls_of(const UsageSnapshot& usage);
/// Returns the number of collectives and messages.
[[nodiscard]] std::uint64_t operations_of(const UsageSnapshot& usage);

/// Returns the counts between two snapshots. A path whose counters are lower than before has
/// a new connection. Round trips are those of `now`.
[[nodiscard]] PCCL_API UsageSnapshot difference(const UsageSnapshot& now,
                                                const UsageSnapshot& before);
/// Adds a later time. A round trip is the shorter one of both.
PCCL_API UsageSnapshot& operator+=(UsageSnapshot& sum, const UsageSnapshot& later);
/// Sorts waits and paths, and drops all but the first `most` of each.
PCCL_API void limit(UsageSnapshot& usage, std::size_t most);

}  // namespace pccl::runtime
