// How a collective goes over shared memory: its windows, and what ranks do in a round.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "csrc/base/ids.h"
#include "csrc/collective/shm_algorithm.h"
#include "csrc/schedule/schedule.h"

namespace pccl::comm {

/// How one collective goes over shared memory, the same on all ranks.
struct ShmPlan {
    bool scatters_first = false;  // it is reduce_scatter and all_gather in turn
    bool is_direct = false;       // ranks read one another's memory
    // Results go past the caches, which they would leave before anybody reads them.
    bool streams_results = false;
    // Elements of a block (two_shot: of a rank's part) that a round moves; all of them if it is
    // direct.
    std::size_t window = 1;
    // If it is direct, where only two ranks know the length of what they exchange: no more goes
    // over shared memory all the same.
    std::size_t inline_bytes = 0;
    std::size_t own_cache = 0;  // bytes of the second level
};

/// Of equal slots in a buffer, no more are used in turn.
inline constexpr std::size_t kMostSlots = 64;
/// Bytes of a buffer through which slots of so many bytes move: so many that a slot has left its
/// reader's own cache before it is written again, and no more, so that all stay in the shared one.
[[nodiscard]] constexpr std::size_t bytes_in_turn(std::size_t slot_bytes, std::size_t own_cache) {
    return std::min(kMostSlots * slot_bytes, std::max(own_cache, 2 * slot_bytes));
}

/// Bytes that are read of each rank's memory at a time before they are added up: with those of all
/// others, and the result, they stay in the reader's own cache.
[[nodiscard]] constexpr std::size_t reduced_at_once(std::size_t own_cache, int ranks) {
    const std::size_t lines = own_cache / 4 / static_cast<std::size_t>(ranks) / kCacheLine;
    return std::max<std::size_t>(lines, 1) * kCacheLine;
}

/// What ranks do in one round, the same on all of them.
struct Round {
    static constexpr Rank kEach = -2;

    Rank giver = kEach;
    Rank reader = kEach;    // of what others give
    bool in_parts = false;  // to each reader its own; else the same to all
    bool reduces = false;   // readers add up what they and all others have

    [[nodiscard]] bool gives(Rank rank) const {
        return (giver == kEach || giver == rank) && reader != rank;
    }
    [[nodiscard]] bool reads(Rank rank) const {
        return (reader == kEach || reader == rank) && giver != rank;
    }
};

/// The rounds of a collective repeat for each window: one, or two of a two-shot all_reduce.
[[nodiscard]] Round round_of(schedule::CollectiveKind kind, bool scatters_first, Rank root,
                             std::size_t round);

/// Whether the collective is reduce_scatter and all_gather in turn.
[[nodiscard]] constexpr bool scatters_first(schedule::CollectiveKind kind, ShmAlgorithm algorithm) {
    return kind == schedule::CollectiveKind::kAllReduce && algorithm != ShmAlgorithm::kOneShot;
}

/// Whether a buffer of the segment is divided among the readers.
[[nodiscard]] constexpr bool divides_buffers(schedule::CollectiveKind kind,
                                             ShmAlgorithm algorithm) {
    using schedule::CollectiveKind;
    return scatters_first(kind, algorithm) || kind == CollectiveKind::kReduceScatter ||
           kind == CollectiveKind::kScatter || kind == CollectiveKind::kAllToAll;
}

}  // namespace pccl::comm
