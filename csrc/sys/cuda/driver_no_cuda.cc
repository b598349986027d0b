// SPDX-License-Identifier: Apache-2.0

// Substitute for driver_cuda.cc in builds without CUDA.
#include "csrc/sys/cuda/driver.h"

namespace pccl::sys::cuda {

Result<Driver*> machine_driver() {
    return Status::unavailable("this build of pccl has no CUDA: build it where nvcc is installed");
}

}  // namespace pccl::sys::cuda
