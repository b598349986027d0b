// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/device_memory.h"

#include <bit>

#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/sys/cuda/on_device.h"

namespace pccl::device {
namespace {

using sys::cuda::DeviceAddress;
using sys::cuda::Stream;

constexpr Stream kDefaultStream = nullptr;

}  // namespace

Result<std::unique_ptr<DeviceMemoryImpl>> DeviceMemoryImpl::allocate(int device, std::size_t bytes,
                                                                     sys::cuda::Driver* driver) {
    PCCL_ASSIGN_OR_RETURN(driver, sys::cuda::driver_on(device, driver));
    PCCL_ASSIGN_OR_RETURN(const DeviceAddress address, driver->allocate(device, bytes));
    std::unique_ptr<DeviceMemoryImpl> memory(new DeviceMemoryImpl(*driver, address, bytes));
    PCCL_TRY(driver->clear(address, bytes));
    return memory;
}

DeviceMemoryImpl::~DeviceMemoryImpl() { static_cast<void>(driver_.deallocate(address_)); }

Status DeviceMemoryImpl::check_fits(std::size_t bytes) const {
    if (bytes <= bytes_) return Status::ok();
    return Status::invalid_argument(
        concat(bytes, " bytes do not fit ", bytes_, " bytes of GPU memory"));
}

Status DeviceMemoryImpl::write(std::span<const std::byte> from) {
    PCCL_TRY(check_fits(from.size()));
    PCCL_TRY(driver_.copy(address_, std::bit_cast<DeviceAddress>(from.data()), from.size(),
                          kDefaultStream));
    return wait();
}

Status DeviceMemoryImpl::read(std::span<std::byte> into) {
    PCCL_TRY(check_fits(into.size()));
    PCCL_TRY(driver_.copy(std::bit_cast<DeviceAddress>(into.data()), address_, into.size(),
                          kDefaultStream));
    return wait();
}

Status DeviceMemoryImpl::wait() { return driver_.wait(kDefaultStream); }

Status copy_from_host(int device, void* to, const void* from, std::size_t bytes,
                      sys::cuda::Stream stream) {
    PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, sys::cuda::process_driver());
    const sys::cuda::OnDevice on_device(*driver, device);
    PCCL_TRY(on_device.status());
    return driver->copy_from_host(std::bit_cast<sys::cuda::DeviceAddress>(to), from, bytes, stream);
}

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
