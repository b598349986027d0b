// A buffer on a GPU, for programs that have no other library for it: examples, `pccl bench --gpus`.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Copies go by the default stream, behind the launches that it has got.
class PCCL_API DeviceMemory {
   public:
    /// Zero-filled; `driver` null: the machine's. Makes the device's context current on this
    /// thread, the only one that may use it. Errors: the driver's.
    static Result<std::unique_ptr<DeviceMemory>> allocate(int device, std::size_t bytes,
                                                          sys::cuda::Driver* driver = nullptr);
    ~DeviceMemory();
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;

    [[nodiscard]] sys::cuda::DeviceAddress address() const { return address_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// The first bytes of it. kInvalidArgument where it is shorter.
    Status write(std::span<const std::byte> from);
    Status read(std::span<std::byte> into);
    /// Until the default stream has done what it has got.
    Status wait();

   private:
    DeviceMemory(sys::cuda::Driver& driver, sys::cuda::DeviceAddress address, std::size_t bytes)
        : driver_(driver), address_(address), bytes_(bytes) {}
    [[nodiscard]] Status check_fits(std::size_t bytes) const;

    sys::cuda::Driver& driver_;
    const sys::cuda::DeviceAddress address_;
    const std::size_t bytes_;
};

}  // namespace pccl::device
