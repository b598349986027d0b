// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/gpu_memory.h"

#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/on_device.h"

namespace pccl::transport {
namespace {

Status check_device(sys::cuda::Driver& driver, const Memory& memory, const std::byte* at) {
    const auto allocation = driver.allocation_of(device_address(at));
    if (allocation.is_ok() && allocation->device == memory.device) return Status::ok();
    return Status::invalid_argument(concat("there are no ", memory.bytes, " bytes of GPU ",
                                           memory.device, " at address ",
                                           device_address(memory.data)));
}

}  // namespace

Result<sys::cuda::Driver*> gpu_driver() {
    auto driver = sys::cuda::process_driver();
    if (driver.is_ok()) return driver;
    return Status::unsupported(
        concat("memory of GPUs is not reached: ", driver.status().message()));
}

Result<int> gpu_of(const std::byte* at) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    const sys::cuda::OnDevice on(*driver, 0);
    PCCL_TRY(on.status());
    auto device = driver->device_of(device_address(at));
    if (device.is_ok()) return device;
    return Status::invalid_argument(
        concat("there is no memory of a GPU at address ", device_address(at)));
}

Result<GpuMemory> find_gpu_memory(const Memory& memory) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
    const sys::cuda::OnDevice on(*driver, memory.device);
    PCCL_TRY(on.status());
    // Memory that was mapped piece by piece consists of several allocations.
    PCCL_TRY(check_device(*driver, memory, memory.data));
    PCCL_TRY(check_device(*driver, memory, memory.data + memory.bytes - 1));
    PCCL_ASSIGN_OR_RETURN(const auto allocation,
                          driver->allocation_of(device_address(memory.data)));
    return GpuMemory{.driver = *driver, .allocation = allocation};
}

}  // namespace pccl::transport
