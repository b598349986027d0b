// SPDX-License-Identifier: Apache-2.0

// Algorithms for collectives over shared memory: names, the plan of a call, its windows, and the
// actions of ranks in a round.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "csrc/base/ids.h"
#include "csrc/schedule/schedule.h"

namespace pccl {

enum class ShmAlgorithm : std::uint8_t {
    kOneShot,  // every rank publishes, every rank reads; for every collective
    kTwoShot,  // reduce_scatter, then all_gather; for all_reduce
    kDirect,   // as these two, but ranks read each other's memory, without a copy in the segment
};
inline constexpr std::array kShmAlgorithms{ShmAlgorithm::kOneShot, ShmAlgorithm::kTwoShot,
                                           ShmAlgorithm::kDirect};

/// Returns the name for PCCL_ALGORITHM and messages.
[[nodiscard]] constexpr std::string_view to_string(ShmAlgorithm algorithm) {
    constexpr std::array<std::string_view, 3> kNames{"shm_one_shot", "shm_two_shot", "shm_direct"};
    return kNames.at(static_cast<std::size_t>(algorithm));
}

/// Returns whether the algorithm can make the collective; only kTwoShot is restricted.
[[nodiscard]] constexpr bool makes(ShmAlgorithm algorithm, schedule::CollectiveKind kind) {
    return algorithm != ShmAlgorithm::kTwoShot || kind == schedule::CollectiveKind::kAllReduce;
}

/// Plan of one collective over shared memory; equal on all ranks.
struct ShmPlan {
    bool scatters_first = false;  // runs reduce_scatter, then all_gather
    bool is_direct = false;       // ranks read each other's memory
    // Results bypass the caches, because they would be evicted before they are read.
    bool streams_results = false;
    // Elements of a block that a round moves, or of a rank's part if scatters_first; all of them
    // if it is direct.
    std::size_t window = 1;
    // If it is direct and only two ranks have the length of their exchange: up to this many bytes
    // still go through the segment.
    std::size_t inline_bytes = 0;
    std::size_t own_cache = 0;  // bytes of the second-level cache
};

/// Maximum number of equal slots in a buffer that are used in turn.
inline constexpr std::size_t kMostSlots = 64;
/// Returns the bytes of a buffer that slots of `slot_bytes` cycle through: enough for a slot to
/// leave its reader's own cache before it is written again, but no more, so that all slots stay in
/// the shared cache.
[[nodiscard]] constexpr std::size_t bytes_in_turn(std::size_t slot_bytes, std::size_t own_cache) {
    return std::min(kMostSlots * slot_bytes, std::max(own_cache, 2 * slot_bytes));
}

/// Returns the bytes that are read of each rank's memory before they are reduced: together with
/// those of all others and the result they fit into the reader's own cache.
[[nodiscard]] constexpr std::size_t reduced_at_once(std::size_t own_cache, int ranks) {
    const std::size_t lines = own_cache / 4 / static_cast<std::size_t>(ranks) / kCacheLine;
    return std::max<std::size_t>(lines, 1) * kCacheLine;
}

/// Actions of ranks in one round; equal on all ranks.
struct ShmRound {
    static constexpr Rank kEach = -2;

    Rank giver = kEach;
    Rank reader = kEach;    // reads the data of the givers
    bool in_parts = false;  // each reader has its own part; otherwise all read the same data
    bool reduces = false;   // readers reduce their own data and those of all others

    [[nodiscard]] bool gives(Rank rank) const {
        return (giver == kEach || giver == rank) && reader != rank;
    }
    [[nodiscard]] bool reads(Rank rank) const {
        return (reader == kEach || reader == rank) && giver != rank;
    }
};

/// Returns a round of a collective. The rounds repeat for each window: two if scatters_first(),
/// otherwise one.
[[nodiscard]] constexpr ShmRound round_of(schedule::CollectiveKind kind, bool scatters_first,
                                          Rank root, std::size_t round) {
    using schedule::CollectiveKind;
    switch (kind) {
        case CollectiveKind::kAllReduce:
            if (!scatters_first) return {.reduces = true};
            if (round % 2 != 0) return {};
            return {.in_parts = true, .reduces = true};
        case CollectiveKind::kReduceScatter:
            return {.in_parts = true, .reduces = true};
        case CollectiveKind::kAllGather:
            return {};
        case CollectiveKind::kAllToAll:
            return {.in_parts = true};
        case CollectiveKind::kBroadcast:
            return {.giver = root};
        case CollectiveKind::kScatter:
            return {.giver = root, .in_parts = true};
        case CollectiveKind::kReduce:
            return {.reader = root, .reduces = true};
        case CollectiveKind::kGather:
            return {.reader = root};
    }
    return {};
}

/// Returns whether the collective runs as reduce_scatter and then all_gather.
[[nodiscard]] constexpr bool scatters_first(schedule::CollectiveKind kind, ShmAlgorithm algorithm) {
    return kind == schedule::CollectiveKind::kAllReduce && algorithm != ShmAlgorithm::kOneShot;
}

/// Returns whether a buffer of the segment is divided among the readers.
[[nodiscard]] constexpr bool divides_buffers(schedule::CollectiveKind kind,
                                             ShmAlgorithm algorithm) {
    using schedule::CollectiveKind;
    return scatters_first(kind, algorithm) || kind == CollectiveKind::kReduceScatter ||
           kind == CollectiveKind::kScatter || kind == CollectiveKind::kAllToAll;
}

}  // namespace pccl
