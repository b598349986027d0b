// SPDX-License-Identifier: Apache-2.0
#include "csrc/runtime/operation.h"

#include <utility>

namespace pccl::runtime {

void Operation::begin(std::shared_ptr<ProgressEngine> engine, TimePoint now, Deadline deadline,
                      FlightRecorder::Ticket ticket) {
    engine_ = std::move(engine);
    deadline_ = deadline;
    ticket_ = ticket;
    status_ = Status::ok();
    source_ = kNoRank;
    issued_ = now;
    if (engine_ != nullptr) timing_ = {now, {}, {}};
    done_.store(false, std::memory_order_relaxed);
}

void Operation::mark_started() {
    if (engine_ == nullptr || timing_.started != TimePoint{}) return;
    timing_.started = system_clock().now();
    flight_recorder().started(ticket_, timing_.started);
}

void Operation::finish(Status status, Rank source) {
    status_ = std::move(status);
    source_ = source;
    ended_ = system_clock().now();
    if (engine_ != nullptr) timing_.finished = ended_;
    flight_recorder().finished(ticket_, status_, ended_);
    const std::lock_guard lock(mutex_);
    done_.store(true, std::memory_order_release);
}

void Operation::finish_unseen() {
    ended_ = system_clock().now();
    flight_recorder().finished(ticket_, {}, ended_);
}

void Operation::on_done(std::function<void(const Status&)> callback) {
    {
        const std::lock_guard lock(mutex_);
        if (!is_done()) {
            callbacks_.push_back(std::move(callback));
            return;
        }
    }
    callback(status_);
}

bool Operation::has_callbacks() {
    const std::lock_guard lock(mutex_);
    return !callbacks_.empty();
}

void Operation::notify() {
    std::vector<std::function<void(const Status&)>> callbacks;
    {
        const std::lock_guard lock(mutex_);
        callbacks.swap(callbacks_);
    }
    for (const auto& callback : callbacks) callback(status_);
}

}  // namespace pccl::runtime

namespace pccl {

Event::Event(std::shared_ptr<runtime::Operation> operation) : operation_(std::move(operation)) {}

bool Event::is_done() const { return operation_->is_done(); }

Status Event::flush() const {
    if (is_done()) return operation_->status();
    return operation_->engine()->flush(*operation_);
}

Status Event::wait(Deadline deadline) const {
    if (is_done()) return operation_->status();
    return operation_->engine()->progress(*operation_, deadline);
}

Status Event::status() const { return operation_->status(); }

Timing Event::record() const { return operation_->timing(); }

Rank Event::source() const { return operation_->source(); }

void Event::on_done(std::function<void(const Status&)> callback) const {
    operation_->on_done(std::move(callback));
}

}  // namespace pccl
