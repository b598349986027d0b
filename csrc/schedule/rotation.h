// SPDX-License-Identifier: Apache-2.0

// Programs that are rotations of one another, so that one program represents all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// Relation between the program of rank r and that of rank 0.
enum class Symmetry : std::uint8_t {
    kNone,           // each rank has its own program
    kRotated,        // peers, and blocks of buffers with one block for each rank, are shifted by r
    kRotatedChunks,  // also shifts the chunks of a one-block buffer by r / ranks of the block
};

[[nodiscard]] PCCL_API std::string_view to_string(Symmetry symmetry);

/// Returns rank 0's program, whose peers are ranks, shifted to `rank`. kRotatedChunks requires a
/// number of chunks that `ranks` divides.
[[nodiscard]] PCCL_API Program rotated(const Program& first, const Shape& shape, Symmetry symmetry,
                                       Rank rank);
[[nodiscard]] PCCL_API std::vector<Program> rotations(const Program& first, const Shape& shape,
                                                      Symmetry symmetry);

/// Returns the first symmetry that holds, apart from kNone, or else kNone.
[[nodiscard]] PCCL_API Symmetry symmetry_of(const Schedule& schedule);

}  // namespace pccl::schedule
