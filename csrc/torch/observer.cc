// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/observer.h"

#include <utility>

namespace pccl::backend {

void Observer::set_hook(Hook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
    timing_ = true;
}

bool Observer::has_hook() {
    const std::lock_guard lock(mutex_);
    return hook_ != nullptr;
}

void Observer::work_started() {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
}

void Observer::work_finished(const std::function<std::shared_ptr<c10d::WorkInfo>()>& info) {
    Hook hook;
    {
        const std::lock_guard lock(mutex_);
        hook = hook_;
    }
    if (hook) hook(info());
    const std::lock_guard lock(mutex_);
    if (--in_flight_ == 0) idle_.notify_all();
}

void Observer::wait_for_works() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return in_flight_ == 0; });
}

}  // namespace pccl::backend
