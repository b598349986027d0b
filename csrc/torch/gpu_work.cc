// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/gpu_work.h"

#include <ATen/record_function.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "csrc/torch/errors.h"
#include "csrc/torch/profiling.h"

namespace pccl::backend {

namespace {

using Future = c10::ivalue::Future;

std::vector<c10::Device> devices_of(const std::vector<at::Tensor>& tensors) {
    if (tensors.empty()) return {};
    return {tensors.front().device()};
}

}  // namespace

GpuTimer::GpuTimer(const c10::Stream& stream)
    : issued_(system_clock().now()),
      start_(stream.device_type(), c10::EventFlag::BACKEND_DEFAULT),
      end_(stream.device_type(), c10::EventFlag::BACKEND_DEFAULT) {
    start_.record(stream);
}

std::chrono::duration<float, std::milli> GpuTimer::elapsed() const {
    return std::chrono::duration<double, std::milli>(start_.elapsedTime(end_));
}

GpuWork::GpuWork(Rank rank, const Request& request, std::weak_ptr<device::DeviceGroupImpl> group)
    : Work(rank, request.type, is_profiling() ? request.title : nullptr,
           inputs_if_profiling(request.inputs)),
      title_(request.title),
      async_(request.async),
      sequence_(request.sequence),
      outputs_(request.outputs),
      group_(std::move(group)) {}

void GpuWork::launched(const c10::Stream& stream) {
    if (recordFunctionEndCallback_) recordFunctionEndCallback_();
    if (timer_) timer_->stop(stream);
    if (!async_) return;
    stream_ = stream;
    end_.emplace(stream.device_type());
    end_->record(stream);
}

bool GpuWork::isCompleted() { return timer_ ? timer_->is_over() : !end_ || end_->query(); }

float GpuWork::getDuration() const {
    TORCH_CHECK(timer_, title_,
                " was not timed: enable the timing of collectives first, and capture none");
    TORCH_CHECK(timer_->is_over(), title_, " has not finished yet");
    return timer_->elapsed().count();
}

bool GpuWork::isSuccess() const { return outcome().is_ok(); }

// A peer may leave once it has all its data: work that was done by then counts as done.
Status GpuWork::outcome() const {
    const auto group = group_.lock();
    const Status health = group == nullptr ? Status::ok() : group->health();
    const bool is_done = !health.is_ok() && !group->has_given_up() && (!end_ || end_->query());
    return is_done ? Status::ok() : health;
}

bool GpuWork::wait(std::chrono::milliseconds) {
    if (end_) {
        const c10::impl::VirtualGuardImpl streams(end_->device_type());
        end_->block(streams.getStream(end_->device()));
    }
    throw_unless_ok(title_, outcome());
    return true;
}

void GpuWork::abort() {
    if (const auto group = group_.lock()) group->abort();
}

// The future completes in stream order: users of its value wait for the work that the streams have
// now.
c10::intrusive_ptr<Future> GpuWork::getFuture() {
    const std::lock_guard lock(mutex_);
    if (future_) return future_;
    future_ = c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
                                          devices_of(outputs_));
    const c10::OptionalStreamGuard on_stream(stream_);
    future_->markCompleted(at::IValue(outputs_));
    return future_;
}

}  // namespace pccl::backend
