// SPDX-License-Identifier: Apache-2.0

// Staging memory on a GPU for tensors that peers cannot map, such as those of expandable segments.
// Data is copied in before the kernel and out after it, in stream order.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/kernels/launch.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Memory of one launch at a time; launches that share a DeviceStage follow one another.
class DeviceStage {
   public:
    DeviceStage(sys::cuda::Driver& driver, int device) : driver_(driver), device_(device) {}
    ~DeviceStage();
    DeviceStage(const DeviceStage&) = delete;
    DeviceStage& operator=(const DeviceStage&) = delete;

    /// Returns memory for `blocks`, one after the other. It stays until the destructor, since
    /// graphs may use it. Errors: the driver's.
    Result<std::vector<Block>> place(std::span<const Block> blocks, DataType type);
    /// Copies block i of `from` to block i of `to`.
    Status copy(std::span<const Block> to, std::span<const Block> from, DataType type,
                kernels::Stream stream);
    [[nodiscard]] std::size_t bytes() const { return held_; }
    /// Makes the destructor leave the memory allocated: a kernel may still use it.
    void keep_memory() { memory_.clear(); }

   private:
    sys::cuda::Driver& driver_;
    const int device_;
    std::vector<sys::cuda::DeviceAddress> memory_;  // the last is in use
    std::size_t capacity_ = 0;                      // bytes of the last
    std::size_t held_ = 0;
};

}  // namespace pccl::device
