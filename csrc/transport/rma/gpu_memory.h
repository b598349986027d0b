// Memory of GPUs as users register it.
#pragma once

#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {

/// The driver of memory that lies on `memory.device`, and what the memory is a part of.
struct GpuMemory {
    sys::cuda::Driver& driver;
    sys::cuda::Allocation allocation;
};
/// kUnsupported where this process has no CUDA, and why; kInvalidArgument where the memory is not
/// on its device.
[[nodiscard]] PCCL_API Result<GpuMemory> find_gpu_memory(const Memory& memory);

/// On which GPU an address lies. Errors as above.
[[nodiscard]] PCCL_API Result<int> gpu_of(const std::byte* at);

/// kUnsupported, and why, where this process has no CUDA.
[[nodiscard]] PCCL_API Result<sys::cuda::Driver*> gpu_driver();

/// How a number stands for an address: memory of GPUs is never looked into from here.
[[nodiscard]] inline sys::cuda::DeviceAddress device_address(const std::byte* at) {
    return reinterpret_cast<sys::cuda::DeviceAddress>(at);
}

}  // namespace pccl::transport
