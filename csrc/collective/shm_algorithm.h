// SPDX-License-Identifier: Apache-2.0

// Algorithms for collectives over shared memory, by name and number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

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

}  // namespace pccl
