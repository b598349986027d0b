// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/host_copies.h"

#include <bit>

#include "csrc/sys/cuda/on_device.h"

namespace pccl::device {

Status copy_from_host(int device, void* to, const void* from, std::size_t bytes,
                      sys::cuda::Stream stream) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, sys::cuda::process_driver());
    const sys::cuda::OnDevice on_device(*driver, device);
    PCCL_TRY(on_device.status());
    return driver->copy_from_host(std::bit_cast<sys::cuda::DeviceAddress>(to), from, bytes, stream);
}

}  // namespace pccl::device
