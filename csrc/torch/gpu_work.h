// SPDX-License-Identifier: Apache-2.0

// Handle of a launch on a GPU, for which streams wait instead of the host.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/device/device_group.h"
#include "csrc/torch/call.h"
#include "csrc/torch/request.h"

namespace pccl::backend {

/// Begin and end of a launch on its GPU.
class GpuTimer {
   public:
    /// Begins with the next work in `stream`.
    explicit GpuTimer(const c10::Stream& stream);
    /// Ends with the work that `stream`, the same one, has got so far. Call it once.
    void stop(const c10::Stream& stream) { end_.record(stream); }

    [[nodiscard]] bool is_over() const { return end_.query(); }
    /// Throws before the launch is over.
    [[nodiscard]] std::chrono::duration<float, std::milli> elapsed() const;
    /// Returns when the host made the launch.
    [[nodiscard]] TimePoint issued() const { return issued_; }

   private:
    const TimePoint issued_;
    c10::Event start_;
    c10::Event end_;
};

class GpuWork final : public c10d::Work {
   public:
    GpuWork(Rank rank, const Request& request, std::weak_ptr<device::DeviceGroupImpl> group);

    /// Starts the timer of a timed work. Call it before the launch, with its stream.
    void start_timer(const c10::Stream& stream) { timer_ = std::make_shared<GpuTimer>(stream); }
    /// Returns null unless the work is timed.
    [[nodiscard]] const std::shared_ptr<GpuTimer>& timer() const { return timer_; }
    /// Records the launch in the current `stream`. Call it once. For an asynchronous work, wait()
    /// makes other streams wait for it.
    void launched(const c10::Stream& stream);

    /// Returns whether the GPU has done the work. Must not be called while the launch is being
    /// captured.
    bool isCompleted() override;
    bool isSuccess() const override;
    /// Makes the current stream wait; returns at once, and ignores the timeout. Throws outcome()
    /// unless ok.
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override { wait(kNoTimeout); }
    std::vector<at::Tensor> result() override { return outputs_; }
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    float getDuration() const override;
    std::uint64_t getSequencenumber() const override { return sequence_; }

   private:
    /// Returns ok, or why this work has failed, as far as is known now.
    [[nodiscard]] Status outcome() const;

    const char* const title_;
    const bool async_;
    const std::uint64_t sequence_;
    const std::vector<at::Tensor> outputs_;
    const std::weak_ptr<device::DeviceGroupImpl> group_;
    std::shared_ptr<GpuTimer> timer_;
    std::optional<c10::Event> end_;                   // of an asynchronous work
    std::optional<c10::Stream> stream_;               // of an asynchronous work
    c10::intrusive_ptr<c10::ivalue::Future> future_;  // made on first use; guarded by mutex_
};

}  // namespace pccl::backend
