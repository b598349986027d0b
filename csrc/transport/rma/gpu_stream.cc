// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/gpu_stream.h"

#include <mutex>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/log/log.h"
#include "csrc/sys/cpu/relax.h"
#include "csrc/sys/cuda/on_device.h"
#include "csrc/transport/rma/gpu_memory.h"

namespace pccl::transport {
namespace {

using sys::cuda::OnDevice;

constexpr Duration kEventTimeout = std::chrono::seconds(2);
constexpr int kSpins = 1000;
constexpr Duration kBetweenLooks = std::chrono::microseconds(20);

/// Keeps memory that a copy engine may still access until the process ends.
void keep(std::shared_ptr<const void> used) {
    static std::mutex mutex;
    static auto* const kept = new std::vector<std::shared_ptr<const void>>;
    const std::lock_guard lock(mutex);
    kept->push_back(std::move(used));
}

}  // namespace

GpuEvent::~GpuEvent() {
    const OnDevice on(driver_, device_);
    if (on.status().is_ok()) static_cast<void>(driver_.destroy_event(event_));
}

Result<bool> GpuEvent::has_come() {
    const OnDevice on(driver_, device_);
    PCCL_TRY(on.status());
    return driver_.has_come(event_);
}

Result<std::shared_ptr<GpuEvent>> GpuEvent::of(sys::cuda::Driver& driver,
                                               const GpuCallerStream& stream) {
    const OnDevice on(driver, stream.device);
    PCCL_TRY(on.status());
    PCCL_ASSIGN_OR_RETURN(const sys::cuda::Event event, driver.record(stream.stream));
    return std::make_shared<GpuEvent>(driver, stream.device, event);
}

Status GpuEvent::hold_up(const GpuCallerStream& then) {
    const OnDevice on(driver_, then.device);
    PCCL_TRY(on.status());
    return driver_.await_event(then.stream, event_);
}

bool GpuEvent::await() {
    const Deadline deadline = Deadline::after(kEventTimeout);
    for (int spin = 0;; ++spin) {
        const auto come = has_come();
        if (!come.is_ok() || *come) return true;
        if (spin < kSpins) {
            relax();
            continue;
        }
        if (deadline.passed()) {
            log(LogLevel::kWarning, "a copy engine of GPU ", device_, " stands still");
            return false;
        }
        system_clock().sleep_for(kBetweenLooks);
    }
}

void GpuEvent::release_after(std::shared_ptr<const void> used) {
    if (!await()) keep(std::move(used));
}

Result<std::unique_ptr<GpuStream>> GpuStream::create(sys::cuda::Driver& driver, int device) {
    const OnDevice on(driver, device);
    PCCL_TRY(on.status());
    PCCL_ASSIGN_OR_RETURN(const sys::cuda::Stream stream, driver.create_stream(device));
    return std::unique_ptr<GpuStream>(new GpuStream(driver, device, stream));
}

GpuStream::~GpuStream() {
    const OnDevice on(driver_, device_);
    if (on.status().is_ok()) static_cast<void>(driver_.destroy_stream(stream_));
}

Status GpuStream::begin(std::span<const sys::cuda::Copy> copies, std::shared_ptr<GpuEvent>& end) {
    Status begun = driver_.copy_all(copies, stream_);
    PCCL_ASSIGN_OR_RETURN(const sys::cuda::Event event, driver_.record(stream_));
    end = std::make_shared<GpuEvent>(driver_, device_, event);
    return begun;
}

Result<std::shared_ptr<GpuEvent>> GpuStream::copy(std::span<const sys::cuda::Copy> copies) {
    const OnDevice on(driver_, device_);
    PCCL_TRY(on.status());
    std::shared_ptr<GpuEvent> end;
    Status begun = begin(copies, end);
    if (begun.is_ok()) return end;
    if (end != nullptr) end->await();  // waits for the copies that did begin
    return begun;
}

Result<std::shared_ptr<GpuEvent>> GpuStream::copy_in_order_of(
    const GpuCallerStream& caller, std::span<const sys::cuda::Copy> copies) {
    PCCL_ASSIGN_OR_RETURN(const auto before, GpuEvent::of(driver_, caller));
    const OnDevice on(driver_, device_);
    PCCL_TRY(on.status());
    PCCL_TRY(before->hold_up({stream_, device_}));
    std::shared_ptr<GpuEvent> end;
    Status begun = begin(copies, end);
    if (end != nullptr && begun.is_ok()) begun = end->hold_up(caller);
    if (begun.is_ok()) return end;
    if (end != nullptr) end->await();
    return begun;
}

Result<GpuStream*> GpuStreams::of(int device) {
    std::unique_ptr<GpuStream>& stream = streams_[device];
    if (stream == nullptr) {
        PCCL_ASSIGN_OR_RETURN(sys::cuda::Driver* const driver, gpu_driver());
        PCCL_ASSIGN_OR_RETURN(stream, GpuStream::create(*driver, device));
    }
    return stream.get();
}

}  // namespace pccl::transport
