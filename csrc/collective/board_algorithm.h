// The ways in which a collective can go over a board, by name and number.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "csrc/schedule/schedule.h"

namespace pccl {

enum class BoardAlgorithm : std::uint8_t {
    kOneShot,  // everybody publishes, everybody reads: every collective
    kTwoShot,  // reduce_scatter, then all_gather: all_reduce
    kDirect,   // as these two, but read from the other's memory, with no copy on the board
};
inline constexpr std::array kBoardAlgorithms{BoardAlgorithm::kOneShot, BoardAlgorithm::kTwoShot,
                                             BoardAlgorithm::kDirect};

/// As PCCL_ALGORITHM and messages have them.
[[nodiscard]] constexpr std::string_view to_string(BoardAlgorithm algorithm) {
    constexpr std::array<std::string_view, 3> kNames{"shm_one_shot", "shm_two_shot", "shm_direct"};
    return kNames.at(static_cast<std::size_t>(algorithm));
}

/// The others make every collective.
[[nodiscard]] constexpr bool makes(BoardAlgorithm algorithm, schedule::CollectiveKind kind) {
    return algorithm != BoardAlgorithm::kTwoShot || kind == schedule::CollectiveKind::kAllReduce;
}

}  // namespace pccl
