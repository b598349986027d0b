// SPDX-License-Identifier: Apache-2.0

// GPU memory for callers above the driver: memory that peers can map, copies from the host, and a
// buffer for programs that have no other library for it (examples, `pccl bench --gpus`).
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Implementation of pccl::DeviceMemory.
class PCCL_API DeviceMemoryImpl {
   public:
    /// Allocates zero-filled memory; `driver` null: the machine's. Makes the device's context
    /// current on this thread, which is the only one that may use the object. Errors: the driver's.
    static Result<std::unique_ptr<DeviceMemoryImpl>> allocate(int device, std::size_t bytes,
                                                              sys::cuda::Driver* driver = nullptr);
    ~DeviceMemoryImpl();
    DeviceMemoryImpl(const DeviceMemoryImpl&) = delete;
    DeviceMemoryImpl& operator=(const DeviceMemoryImpl&) = delete;

    [[nodiscard]] sys::cuda::DeviceAddress address() const { return address_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// Copies to or from the first bytes of the buffer. kInvalidArgument where it is shorter.
    Status write(std::span<const std::byte> from);
    Status read(std::span<std::byte> into);
    /// Waits until the default stream has finished its present work.
    Status wait();

   private:
    DeviceMemoryImpl(sys::cuda::Driver& driver, sys::cuda::DeviceAddress address, std::size_t bytes)
        : driver_(driver), address_(address), bytes_(bytes) {}
    [[nodiscard]] Status check_fits(std::size_t bytes) const;

    sys::cuda::Driver& driver_;
    const sys::cuda::DeviceAddress address_;
    const std::size_t bytes_;
};

/// Copies `bytes` of pinned memory to `to`, memory of `device`, in the order of `stream`. Uses a
/// copy engine for few bytes, too (Driver::copy_from_host). kUnavailable in a build without CUDA.
[[nodiscard]] PCCL_API Status copy_from_host(int device, void* to, const void* from,
                                             std::size_t bytes, sys::cuda::Stream stream);

/// Returns whether this build and this machine support GPUs.
[[nodiscard]] PCCL_API bool has_gpu_driver();
/// Allocates on `device`, a CUDA device number in this process. kResourceExhausted where memory is
/// short.
[[nodiscard]] PCCL_API Result<void*> allocate_shareable(int device, std::size_t bytes);
PCCL_API Status free_shareable(void* memory);

}  // namespace pccl::device
