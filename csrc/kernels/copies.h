// SPDX-License-Identifier: Apache-2.0

// Launches that make many small copies each.
#pragma once

#include <cstddef>
#include <span>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/kernels/launch.h"

namespace pccl::kernels {

/// One copy between two addresses that the device can access.
struct Piece {
    const std::byte* from = nullptr;
    std::byte* to = nullptr;
    std::size_t bytes = 0;
};

/// Loads the copy kernel, as load_kernels() loads those of groups. Only in builds with CUDA, like
/// the next function.
[[nodiscard]] Status load_copies();
/// Copies by multiprocessors, in any order, behind the earlier work in `stream`.
[[nodiscard]] PCCL_API Status launch_copies(std::span<const Piece> pieces, Stream stream);

}  // namespace pccl::kernels
