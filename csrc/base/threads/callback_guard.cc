// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/threads/callback_guard.h"

#include <algorithm>

namespace pccl {

void CallbackGuard::enter() {
    const std::lock_guard lock(mutex_);
    threads_.push_back(std::this_thread::get_id());
}

void CallbackGuard::leave() {
    const std::lock_guard lock(mutex_);
    threads_.erase(std::ranges::find(threads_, std::this_thread::get_id()));
    left_.notify_all();
}

bool CallbackGuard::await_others(Deadline deadline) {
    const auto is_other = [self = std::this_thread::get_id()](std::thread::id thread) {
        return thread != self;
    };
    std::unique_lock lock(mutex_);
    while (std::ranges::any_of(threads_, is_other)) {
        if (deadline.passed()) return false;
        left_.wait_for(lock, deadline.slice());
    }
    return true;
}

}  // namespace pccl
