// The driver that process_driver() gives where no other stands in for it.
#pragma once

#include "csrc/sys/cuda/driver.h"

namespace pccl::sys::cuda {

/// Opened once; errors as those of process_driver().
[[nodiscard]] Result<Driver*> machine_driver();

}  // namespace pccl::sys::cuda
