// The handle of a launch on a GPU: what waits for it is a stream, not the host.
#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <chrono>
#include <memory>
#include <optional>
#include <torch/csrc/distributed/c10d/Work.hpp>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/device/device_group.h"
#include "csrc/torch/call.h"
#include "csrc/torch/request.h"

namespace pccl::backend {

/// When a launch began and ended on its GPU.
class GpuTimer {
   public:
    /// Begins with what `stream` gets next.
    explicit GpuTimer(const c10::Stream& stream);
    /// Ends with what `stream`, the same, has got; to be called once, before what follows.
    void stop(const c10::Stream& stream) { end_.record(stream); }

    [[nodiscard]] bool is_over() const { return end_.query(); }
    /// Throws before it is over.
    [[nodiscard]] std::chrono::duration<float, std::milli> elapsed() const;
    /// When the host made it.
    [[nodiscard]] TimePoint issued() const { return issued_; }

   private:
    const TimePoint issued_;
    c10::Event start_;
    c10::Event end_;
};

class GpuWork final : public c10d::Work {
   public:
    GpuWork(Rank rank, const Request& request, std::weak_ptr<device::DeviceGroup> group);

    /// For works that are timed: to be called before the launch, with its stream.
    void start_timer(const c10::Stream& stream) { timer_ = std::make_shared<GpuTimer>(stream); }
    /// Null unless it is timed.
    [[nodiscard]] const std::shared_ptr<GpuTimer>& timer() const { return timer_; }
    /// To be called once, with what was launched in the current `stream`. Of an asynchronous one,
    /// wait() makes other streams wait for it.
    void launched(const c10::Stream& stream);

    /// Whether the GPU has done it. Not to be asked while the launch is being captured.
    bool isCompleted() override;
    bool isSuccess() const override;
    /// Makes the current stream wait; returns at once, whatever the timeout. Throws outcome().
    bool wait(std::chrono::milliseconds timeout) override;
    void synchronize() override { wait(kNoTimeout); }
    std::vector<at::Tensor> result() override { return outputs_; }
    void abort() override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;
    float getDuration() const override;
    std::uint64_t getSequencenumber() const override { return sequence_; }

   private:
    /// ok, or why this work has failed, as far as that is known now.
    [[nodiscard]] Status outcome() const;

    const char* const title_;
    const bool async_;
    const std::uint64_t sequence_;
    const std::vector<at::Tensor> outputs_;
    const std::weak_ptr<device::DeviceGroup> group_;
    std::shared_ptr<GpuTimer> timer_;
    std::optional<c10::Event> end_;                   // of asynchronous ones
    std::optional<c10::Stream> stream_;               // likewise
    c10::intrusive_ptr<c10::ivalue::Future> future_;  // made when asked for; guarded by mutex_
};

}  // namespace pccl::backend
