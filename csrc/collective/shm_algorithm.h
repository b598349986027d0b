// The ways in which a collective can go over shared memory, by name and number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "csrc/schedule/schedule.h"

namespace pccl {

enum class ShmAlgorithm : std::uint8_t {
    kOneShot,  // everybody publishes, everybody reads: every collective
    kTwoShot,  // reduce_scatter, then all_gather: all_reduce
    kDirect,   // as these two, but read from the other's memory, with no copy in shared memory
};
inline constexpr std::array kShmAlgorithms{ShmAlgorithm::kOneShot, ShmAlgorithm::kTwoShot,
                                           ShmAlgorithm::kDirect};

/// As PCCL_ALGORITHM and messages have them.
[[nodiscard]] constexpr std::string_view to_string(ShmAlgorithm algorithm) {
    constexpr std::array<std::string_view, 3> kNames{"shm_one_shot", "shm_two_shot", "shm_direct"};
    return kNames.at(static_cast<std::size_t>(algorithm));
}

/// The others make every collective.
[[nodiscard]] constexpr bool makes(ShmAlgorithm algorithm, schedule::CollectiveKind kind) {
    return algorithm != ShmAlgorithm::kTwoShot || kind == schedule::CollectiveKind::kAllReduce;
}

}  // namespace pccl
