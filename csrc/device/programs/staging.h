// SPDX-License-Identifier: Apache-2.0

// Staging memory through which the host reads and writes GPU memory.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <utility>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"

namespace pccl::device {

/// Pinned host memory with a stream of its own.
class PinnedStaging {
   public:
    static Result<PinnedStaging> make(sys::cuda::Driver& driver, int device, std::size_t bytes) {
        PinnedStaging made(driver, bytes);
        PCCL_ASSIGN_OR_RETURN(made.stream_, driver.create_stream(device));
        PCCL_ASSIGN_OR_RETURN(made.memory_, driver.allocate_host(bytes));
        return made;
    }
    PinnedStaging(PinnedStaging&& other) noexcept
        : driver_(other.driver_),
          bytes_(other.bytes_),
          stream_(std::exchange(other.stream_, nullptr)),
          memory_(std::exchange(other.memory_, nullptr)) {}
    PinnedStaging(const PinnedStaging&) = delete;
    PinnedStaging& operator=(const PinnedStaging&) = delete;
    PinnedStaging& operator=(PinnedStaging&&) = delete;
    ~PinnedStaging() {
        if (stream_ != nullptr) static_cast<void>(driver_.destroy_stream(stream_));
        if (memory_ != nullptr) static_cast<void>(driver_.free_host(memory_));
    }

    [[nodiscard]] std::span<std::byte> bytes() const {
        return {static_cast<std::byte*>(memory_), bytes_};
    }
    [[nodiscard]] sys::cuda::DeviceAddress address() const {
        return std::bit_cast<sys::cuda::DeviceAddress>(memory_);
    }
    [[nodiscard]] sys::cuda::Stream stream() const { return stream_; }
    /// Copies all of it, with address() as one side; complete on return.
    [[nodiscard]] Status copy(sys::cuda::DeviceAddress to, sys::cuda::DeviceAddress from) const {
        PCCL_TRY(driver_.copy(to, from, bytes_, stream_));
        return driver_.wait(stream_);
    }

   private:
    PinnedStaging(sys::cuda::Driver& driver, std::size_t bytes) : driver_(driver), bytes_(bytes) {}

    sys::cuda::Driver& driver_;
    std::size_t bytes_;
    sys::cuda::Stream stream_ = nullptr;
    void* memory_ = nullptr;
};

}  // namespace pccl::device
