// GPU memory through which tensors take part that peers cannot map, such as those of expandable
// segments: copied in before the kernel, and out after it, in stream order.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "csrc/collective/collective.h"
#include "csrc/kernels/launch.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Memory of one launch at a time; those that share a DeviceStage follow one another.
class DeviceStage {
   public:
    DeviceStage(sys::cuda::Driver& driver, int device) : driver_(driver), device_(device) {}
    ~DeviceStage();
    DeviceStage(const DeviceStage&) = delete;
    DeviceStage& operator=(const DeviceStage&) = delete;

    /// Memory for `blocks`, one after the other; it stays until the destructor, since graphs may
    /// use it. Errors: the driver's.
    Result<std::vector<Block>> place(std::span<const Block> blocks, DataType type);
    /// Copies block i of `from` to block i of `to`.
    Status copy(std::span<const Block> to, std::span<const Block> from, DataType type,
                kernels::Stream stream);
    [[nodiscard]] std::size_t bytes() const { return held_; }
    /// The destructor does not give it back: a kernel may still use it.
    void keep_memory() { memory_.clear(); }

   private:
    sys::cuda::Driver& driver_;
    const int device_;
    std::vector<sys::cuda::DeviceAddress> memory_;  // the last is in use
    std::size_t capacity_ = 0;                      // of the last
    std::size_t held_ = 0;
};

}  // namespace pccl::device
