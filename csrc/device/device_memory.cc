// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/device_memory.h"

#include <bit>

#include "csrc/base/text.h"

namespace pccl::device {
namespace {

using sys::cuda::DeviceAddress;
using sys::cuda::Stream;

constexpr Stream kDefaultStream = nullptr;

}  // namespace

Result<std::unique_ptr<DeviceMemory>> DeviceMemory::allocate(int device, std::size_t bytes,
                                                             sys::cuda::Driver* driver) {
    PCCL_ASSIGN_OR_RETURN(driver, sys::cuda::driver_on(device, driver));
    PCCL_ASSIGN_OR_RETURN(const DeviceAddress address, driver->allocate(device, bytes));
    std::unique_ptr<DeviceMemory> memory(new DeviceMemory(*driver, address, bytes));
    PCCL_TRY(driver->clear(address, bytes));
    return memory;
}

DeviceMemory::~DeviceMemory() { static_cast<void>(driver_.deallocate(address_)); }

Status DeviceMemory::check_fits(std::size_t bytes) const {
    if (bytes <= bytes_) return Status::ok();
    return Status::invalid_argument(
        concat(bytes, " bytes do not fit ", bytes_, " bytes of GPU memory"));
}

Status DeviceMemory::write(std::span<const std::byte> from) {
    PCCL_TRY(check_fits(from.size()));
    PCCL_TRY(driver_.copy(address_, std::bit_cast<DeviceAddress>(from.data()), from.size(),
                          kDefaultStream));
    return wait();
}

Status DeviceMemory::read(std::span<std::byte> into) {
    PCCL_TRY(check_fits(into.size()));
    PCCL_TRY(driver_.copy(std::bit_cast<DeviceAddress>(into.data()), address_, into.size(),
                          kDefaultStream));
    return wait();
}

Status DeviceMemory::wait() { return driver_.wait(kDefaultStream); }

}  // namespace pccl::device
