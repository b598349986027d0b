// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/shareable_memory.h"

#include <bit>

#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

bool has_gpu_driver() { return sys::cuda::process_driver().is_ok(); }

Result<void*> allocate_shareable(int device, std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, sys::cuda::process_driver());
    PCCL_ASSIGN_OR_RETURN(const auto base, driver->allocate(device, bytes));
    return std::bit_cast<void*>(base);
}

Status free_shareable(void* memory) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, sys::cuda::process_driver());
    return driver->deallocate(std::bit_cast<sys::cuda::DeviceAddress>(memory));
}

}  // namespace pccl::device
