// Programs that are the same for all ranks, seen from each rank: one then stands for all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// How the program of rank r follows from that of rank 0.
enum class Symmetry : std::uint8_t {
    kNone,           // each rank has its own
    kRotated,        // peers are r further, and so are the blocks of buffers with one for each rank
    kRotatedChunks,  // the chunks of the one block of a buffer are r / ranks of it further, too
};

[[nodiscard]] PCCL_API std::string_view to_string(Symmetry symmetry);

/// Rank 0's program, whose peers are ranks, seen from `rank`. kRotatedChunks needs chunks that
/// `ranks` divides.
[[nodiscard]] PCCL_API Program rotated(const Program& first, const Shape& shape, Symmetry symmetry,
                                       Rank rank);
[[nodiscard]] PCCL_API std::vector<Program> rotations(const Program& first, const Shape& shape,
                                                      Symmetry symmetry);

/// The first that holds, but kNone.
[[nodiscard]] PCCL_API Symmetry symmetry_of(const Schedule& schedule);

}  // namespace pccl::schedule
