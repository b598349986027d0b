// Copies by the engines of a GPU, which begin here and end later, in their order.
#pragma once

#include <map>
#include <memory>
#include <span>

#include "csrc/base/status.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/rma.h"

namespace pccl::transport {

/// What a stream had got at one moment. Safe from every thread.
class PCCL_API GpuEvent {
   public:
    GpuEvent(sys::cuda::Driver& driver, int device, sys::cuda::Event event)
        : driver_(driver), device_(device), event_(event) {}
    /// What the stream, which is not being captured, has got by now.
    static Result<std::shared_ptr<GpuEvent>> of(sys::cuda::Driver& driver,
                                                const GpuCallerStream& stream);
    ~GpuEvent();
    GpuEvent(const GpuEvent&) = delete;
    GpuEvent& operator=(const GpuEvent&) = delete;

    /// Whether the GPU has come that far; an error is that of the device, which does nothing more.
    [[nodiscard]] Result<bool> has_come();
    /// Waits until then, 2 s at most: an engine that stands still is given up. Returns whether the
    /// engine is done, as it is after an error of the device.
    bool await();
    /// Waits likewise before it drops `used`, which the engine accesses. Where the engine stands
    /// still, keeps `used` until the process ends: nobody else may have that memory.
    void release_after(std::shared_ptr<const void> used);
    /// Whatever `then` gets from now on waits for it.
    Status hold_up(const GpuCallerStream& then);

   private:
    sys::cuda::Driver& driver_;
    const int device_;
    const sys::cuda::Event event_;
};

/// One thread at a time.
class PCCL_API GpuStream {
   public:
    static Result<std::unique_ptr<GpuStream>> create(sys::cuda::Driver& driver, int device);
    ~GpuStream();
    GpuStream(const GpuStream&) = delete;
    GpuStream& operator=(const GpuStream&) = delete;

    /// Begins them, and says when they are over.
    Result<std::shared_ptr<GpuEvent>> copy(std::span<const sys::cuda::Copy> copies);
    /// The same, behind what `caller` has got, and ahead of what that gets later. After an error
    /// none of them goes on.
    Result<std::shared_ptr<GpuEvent>> copy_in_order_of(const GpuCallerStream& caller,
                                                       std::span<const sys::cuda::Copy> copies);
    [[nodiscard]] int device() const { return device_; }

   private:
    GpuStream(sys::cuda::Driver& driver, int device, sys::cuda::Stream stream)
        : driver_(driver), device_(device), stream_(stream) {}
    /// Begins them, behind which `end` is then. On the device.
    Status begin(std::span<const sys::cuda::Copy> copies, std::shared_ptr<GpuEvent>& end);

    sys::cuda::Driver& driver_;
    const int device_;
    const sys::cuda::Stream stream_;
};

/// One for each device, made when it is needed. One thread at a time.
class PCCL_API GpuStreams {
   public:
    /// kUnsupported where this process has no CUDA.
    Result<GpuStream*> of(int device);

   private:
    std::map<int, std::unique_ptr<GpuStream>> streams_;
};

}  // namespace pccl::transport
