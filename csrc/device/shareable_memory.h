// GPU memory that peers can map, whatever an allocator of tensors does otherwise.
#pragma once

#include <cstddef>

#include "csrc/base/export.h"
#include "csrc/base/status.h"

namespace pccl::device {

/// Whether this build and this machine know GPUs.
[[nodiscard]] PCCL_API bool has_gpu_driver();
/// On `device`, as CUDA numbers it in this process. kResourceExhausted when there is none left.
[[nodiscard]] PCCL_API Result<void*> allocate_shareable(int device, std::size_t bytes);
PCCL_API Status free_shareable(void* memory);

}  // namespace pccl::device
