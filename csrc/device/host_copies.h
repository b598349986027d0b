// SPDX-License-Identifier: Apache-2.0

// Copies between host memory and a GPU, for callers above the driver.
#pragma once

#include <cstddef>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Copies `bytes` of pinned memory to `to`, memory of `device`, in the order of `stream`. Uses a
/// copy engine for few bytes, too (Driver::copy_from_host). kUnavailable in a build without CUDA.
[[nodiscard]] PCCL_API Status copy_from_host(int device, void* to, const void* from,
                                             std::size_t bytes, sys::cuda::Stream stream);

}  // namespace pccl::device
