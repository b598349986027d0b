// SPDX-License-Identifier: Apache-2.0

// NVLink detection of a GPU.
#pragma once

#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Returns whether GPU `device` of this process has NVLinks, as NVML reports once per device; false
/// where that is unknown.
[[nodiscard]] bool has_nvlinks(sys::cuda::Driver& driver, int device);

}  // namespace pccl::device
