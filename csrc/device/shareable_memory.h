// SPDX-License-Identifier: Apache-2.0

// GPU memory that peers can map, independent of the tensor allocator.
#pragma once

#include <cstddef>

#include <pccl/export.h>
#include <pccl/status.h>

namespace pccl::device {

/// Returns whether this build and this machine support GPUs.
[[nodiscard]] PCCL_API bool has_gpu_driver();
/// Allocates on `device`, a CUDA device number in this process. kResourceExhausted where memory is
/// short.
[[nodiscard]] PCCL_API Result<void*> allocate_shareable(int device, std::size_t bytes);
PCCL_API Status free_shareable(void* memory);

}  // namespace pccl::device
