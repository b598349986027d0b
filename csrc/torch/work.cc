// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/work.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/torch/errors.h"
#include "csrc/torch/profiling.h"
#include "csrc/torch/timeouts.h"

namespace pccl::backend {

namespace {

using Future = c10::ivalue::Future;

/// The tensors must be on one device.
c10::intrusive_ptr<Future> make_future(const std::vector<at::Tensor>& outputs) {
    std::vector<c10::Device> devices;
    if (!outputs.empty() && outputs.front().is_cuda()) devices.push_back(outputs.front().device());
    return c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()),
                                       std::move(devices));
}

/// c10d passes kNoTimeout, which is 0, for no timeout.
Deadline deadline_of(std::chrono::milliseconds timeout, std::string_view operation) {
    return timeout == kNoTimeout ? Deadline::never()
                                 : Deadline::after(limit_of(timeout, operation));
}

}  // namespace

PcclWork::PcclWork(Rank rank, Request& request, std::shared_ptr<WorkObserver> observer,
                   std::weak_ptr<comm::CommunicatorImpl> communicator)
    : Work(rank, request.type, is_profiling() ? request.title : nullptr,
           inputs_if_profiling(request.inputs)),
      title_(request.title),
      sequence_(request.sequence),
      observer_(std::move(observer)),
      communicator_(std::move(communicator)),
      outputs_(std::move(request.outputs)),
      timed_(observer_->wants_times()) {
    if (!timed_) return;
    started_ = system_clock().now();
    observer_->work_started();
}

void PcclWork::finish_now(const Status& status) { complete(status); }

void PcclWork::finish_after(std::vector<Event> events, std::vector<StagedMemory> stages,
                            Status failure) {
    events_ = std::move(events);
    stages_ = std::move(stages);
    failure_ = std::move(failure);
    running_ = events_.size();
    if (events_.empty()) return complete(failure_);
    const auto self = c10::intrusive_ptr<PcclWork>::unsafe_reclaim_from_nonowning(this);
    for (const Event& event : events_) {
        event.on_done([self](const Status&) {
            if (--self->running_ == 0) self->complete(self->outcome());
        });
    }
}

bool PcclWork::wait(std::chrono::milliseconds timeout) {
    if (!isCompleted()) {
        const Deadline deadline = deadline_of(timeout, title_);
        for (const Event& event : events_) {
            const Status status = event.wait(deadline);
            if (!event.is_done()) throw_status(title_, status);
        }
        // A child of fork() does not have the thread that completes the work.
        if (const auto communicator = communicator_.lock())
            throw_unless_ok(title_, communicator->check_process());
    }
    // Another thread may have ended the operation and still be completing this work.
    return Work::wait(kNoTimeout);
}

std::vector<at::Tensor> PcclWork::result() { return outputs_; }

int PcclWork::sourceRank() const {
    TORCH_CHECK(!events_.empty(), title_, " has no source rank");
    return events_.front().source();
}

void PcclWork::abort() {
    if (const auto communicator = communicator_.lock()) {
        communicator->abort(Status::aborted("Work.abort was called"));
    }
}

c10::intrusive_ptr<Future> PcclWork::getFuture() {
    c10::intrusive_ptr<Future> future;
    {
        const std::lock_guard lock(mutex_);
        if (future_) return future_;
        future = future_ = make_future(outputs_);
        if (!completed_) return future;
    }
    resolve_future();
    return future;
}

float PcclWork::getDuration() const {
    TORCH_CHECK(timed_, title_, " was not timed: enable the timing of collectives first");
    const std::lock_guard lock(mutex_);
    TORCH_CHECK(completed_, title_, " has not finished yet");
    const std::chrono::duration<float, std::milli> elapsed = finished_ - started_;
    return elapsed.count();
}

std::uint64_t PcclWork::getSequencenumber() const { return sequence_; }

Status PcclWork::outcome() const {
    if (!failure_.is_ok()) return failure_;
    for (const Event& event : events_) {
        if (Status status = event.status(); !status.is_ok()) return status;
    }
    return Status::ok();
}

Status PcclWork::finish_stage(const TensorStaging& staging, bool may_fail_alone) const {
    Status kept = staging.finish();
    if (kept.is_ok() || !may_fail_alone) return kept;
    if (const auto communicator = communicator_.lock())
        communicator->abort(
            Status::mismatch(rank_, concat("rank ", rank_, " refused the data that it received in ",
                                           title_, " #", sequence_, ": ", kept.message())));
    return kept;
}

void PcclWork::complete(const Status& status) {
    Status reason = status;
    for (const StagedMemory& stage : stages_) reason = stage.staging.own_reason(reason);
    std::exception_ptr error = to_exception(title_, reason);
    try {
        for (const StagedMemory& stage : stages_)
            if (!error)
                error = to_exception(title_, finish_stage(stage.staging, stage.may_fail_alone));
    } catch (...) {
        error = std::current_exception();
    }
    stages_.clear();
    if (timed_) finished_ = system_clock().now();
    finish(error);
    notify_users();
}

void PcclWork::notify_users() {
    bool has_future = false;
    {
        const std::lock_guard lock(mutex_);
        has_future = future_ != nullptr;
    }
    if (!has_future && !timed_) return;
    const auto self = c10::intrusive_ptr<PcclWork>::unsafe_reclaim_from_nonowning(this);
    const auto notify = [self, has_future] {
        if (has_future) self->resolve_future();
        if (self->timed_) self->report();
    };
    if (::pthread_equal(::pthread_self(), issuer_) != 0) {
        notify();
    } else {
        observer_->runner().run(notify);
    }
}

void PcclWork::resolve_future() {
    c10::intrusive_ptr<Future> future;
    {
        const std::lock_guard lock(mutex_);
        if (std::exchange(resolved_, true)) return;
        future = future_;
    }
    if (exception_) {
        future->setError(exception_);
    } else {
        future->markCompleted(at::IValue(outputs_));
    }
}

void PcclWork::report() {
    observer_->work_finished([this] {
        return std::make_shared<c10d::WorkInfo>(opType_, sequence_, started_, finished_,
                                                finished_ - started_);
    });
}

BatchWork::BatchWork(Rank rank, std::vector<c10::intrusive_ptr<c10d::Work>> works)
    : Work(rank, c10d::OpType::COALESCED), works_(std::move(works)) {}

bool BatchWork::isCompleted() {
    return std::ranges::all_of(works_, [](const auto& work) { return work->isCompleted(); });
}

bool BatchWork::isSuccess() const { return exception() == nullptr; }

std::exception_ptr BatchWork::exception() const {
    for (const auto& work : works_) {
        if (std::exception_ptr error = work->exception()) return error;
    }
    return nullptr;
}

bool BatchWork::wait(std::chrono::milliseconds timeout) {
    for (const auto& work : works_) work->wait(timeout);
    return true;
}

std::vector<at::Tensor> BatchWork::result() {
    std::vector<at::Tensor> all;
    for (const auto& work : works_) {
        const std::vector<at::Tensor> some = work->result();
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

c10::intrusive_ptr<Future> BatchWork::getFuture() {
    c10::List<c10::intrusive_ptr<Future>> futures(
        c10::FutureType::create(c10::ListType::create(c10::TensorType::get())));
    for (const auto& work : works_) futures.push_back(work->getFuture());
    return c10::collectAll(futures)->then(
        [outputs = result()](Future& all) {
            all.value();  // throws the first error
            return at::IValue(outputs);
        },
        c10::ListType::create(c10::TensorType::get()));
}

}  // namespace pccl::backend
