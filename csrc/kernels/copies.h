// Many small copies in few launches.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/base/export.h"
#include "csrc/base/status.h"
#include "csrc/kernels/launch.h"

namespace pccl::kernels {

/// Bytes to be copied between any two addresses that the device reaches.
struct Piece {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
};

/// Loads the kernel, as load_kernels() does those of groups. Only in builds with CUDA, as the next.
[[nodiscard]] Status load_copies();
/// Copies by multiprocessors, in any order among each other, behind all that `stream` has got.
[[nodiscard]] PCCL_API Status launch_copies(std::span<const Piece> pieces, Stream stream);

}  // namespace pccl::kernels
