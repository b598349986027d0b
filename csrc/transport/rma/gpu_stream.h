// SPDX-License-Identifier: Apache-2.0

// Copies by the copy engines of a GPU, which begin here and end later, in their order.
#pragma once

#include <map>
#include <memory>
#include <span>

#include <pccl/status.h>
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {

/// Point in a stream: all work that it had received at one moment. Thread-safe.
class PCCL_API GpuEvent {
   public:
    GpuEvent(sys::cuda::Driver& driver, int device, sys::cuda::Event event)
        : driver_(driver), device_(device), event_(event) {}
    /// Records the present end of the stream, which is not being captured.
    static Result<std::shared_ptr<GpuEvent>> of(sys::cuda::Driver& driver,
                                                const GpuCallerStream& stream);
    ~GpuEvent();
    GpuEvent(const GpuEvent&) = delete;
    GpuEvent& operator=(const GpuEvent&) = delete;

    /// Returns whether the GPU has reached the point. An error is that of the device, which does no
    /// more work.
    [[nodiscard]] Result<bool> has_come();
    /// Waits for the point, 2 s at most: then the copy engine counts as hung. Returns whether the
    /// engine is done, as it is after an error of the device.
    bool await();
    /// Waits like await() before it drops `used`, which the engine accesses. If the engine hangs,
    /// keeps `used` until the process ends: nobody else may have that memory.
    void release_after(std::shared_ptr<const void> used);
    /// Makes later work of `then` wait for the point.
    Status hold_up(const GpuCallerStream& then);

   private:
    sys::cuda::Driver& driver_;
    const int device_;
    const sys::cuda::Event event_;
};

/// Stream for copies. One thread at a time.
class PCCL_API GpuStream {
   public:
    static Result<std::unique_ptr<GpuStream>> create(sys::cuda::Driver& driver, int device);
    ~GpuStream();
    GpuStream(const GpuStream&) = delete;
    GpuStream& operator=(const GpuStream&) = delete;

    /// Begins copies, and returns the event of their end.
    Result<std::shared_ptr<GpuEvent>> copy(std::span<const sys::cuda::Copy> copies);
    /// Begins copies after the present work of `caller`, and makes its later work wait for them.
    /// After an error no copy continues.
    Result<std::shared_ptr<GpuEvent>> copy_in_order_of(const GpuCallerStream& caller,
                                                       std::span<const sys::cuda::Copy> copies);
    [[nodiscard]] int device() const { return device_; }

   private:
    GpuStream(sys::cuda::Driver& driver, int device, sys::cuda::Stream stream)
        : driver_(driver), device_(device), stream_(stream) {}
    /// Begins copies and records `end` after them. The device must be current.
    Status begin(std::span<const sys::cuda::Copy> copies, std::shared_ptr<GpuEvent>& end);

    sys::cuda::Driver& driver_;
    const int device_;
    const sys::cuda::Stream stream_;
};

/// One stream for each device, made on first use. One thread at a time.
class PCCL_API GpuStreams {
   public:
    /// Returns the stream of a device; kUnsupported where this process has no CUDA.
    Result<GpuStream*> of(int device);

   private:
    std::map<int, std::unique_ptr<GpuStream>> streams_;
};

}  // namespace pccl::transport
