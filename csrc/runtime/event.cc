// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <pccl/collective.h>
#include "csrc/runtime/operation.h"

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
