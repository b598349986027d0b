// SPDX-License-Identifier: Apache-2.0

// Memory of GPUs as users register it.
#pragma once

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {

/// Driver of the memory's device, and the allocation that contains the memory.
struct GpuMemory {
    sys::cuda::Driver& driver;
    sys::cuda::Allocation allocation;
};
/// Finds the allocation of a memory. kUnsupported, with the reason, where this process has no CUDA;
/// kInvalidArgument where the memory is not on its device.
[[nodiscard]] PCCL_API Result<GpuMemory> find_gpu_memory(const Memory& memory);

/// Returns the GPU of an address. Errors as of find_gpu_memory().
[[nodiscard]] PCCL_API Result<int> gpu_of(const std::byte* at);

/// Returns the driver; kUnsupported, with the reason, where this process has no CUDA.
[[nodiscard]] PCCL_API Result<sys::cuda::Driver*> gpu_driver();

/// Converts an address into the driver's number: the host never dereferences memory of GPUs.
[[nodiscard]] inline sys::cuda::DeviceAddress device_address(const std::byte* at) {
    return reinterpret_cast<sys::cuda::DeviceAddress>(at);
}

}  // namespace pccl::transport
