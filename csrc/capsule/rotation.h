// Programs that are the same for all ranks, seen from each rank: one then stands for all.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "csrc/schedule/schedule.h"

namespace pccl::capsule {

/// How the program of rank r follows from that of rank 0.
enum class Symmetry : std::uint8_t {
    kNone,           // each rank has its own
    kRotated,        // peers are r further, and so are the blocks of buffers with one for each rank
    kRotatedChunks,  // the chunks of the one block of a buffer are r / ranks of it further, too
};

[[nodiscard]] std::string_view to_string(Symmetry symmetry);

/// Rank 0's program, seen from `rank`. kRotatedChunks needs chunks that `ranks` divides.
[[nodiscard]] schedule::Program rotated(const schedule::Program& first,
                                        const schedule::Shape& shape, Symmetry symmetry, Rank rank);
[[nodiscard]] std::vector<schedule::Program> rotations(const schedule::Program& first,
                                                       const schedule::Shape& shape,
                                                       Symmetry symmetry);

/// The first that holds, but kNone.
[[nodiscard]] Symmetry symmetry_of(const schedule::Schedule& schedule);

}  // namespace pccl::capsule
