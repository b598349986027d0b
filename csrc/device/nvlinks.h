// Whether a GPU is joined to others by NVLink.
#pragma once

#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Of GPU `device` of this process, as NVML says it, once for each; false where nobody does.
[[nodiscard]] bool has_nvlinks(sys::cuda::Driver& driver, int device);

}  // namespace pccl::device
