// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/observer.h"

#include <utility>

namespace pccl::backend {

void WorkObserver::set_hook(Hook hook) {
    const std::lock_guard lock(mutex_);
    hook_ = std::move(hook);
    timing_ = true;
}

bool WorkObserver::has_hook() {
    const std::lock_guard lock(mutex_);
    return hook_ != nullptr;
}

void WorkObserver::work_started() {
    const std::lock_guard lock(mutex_);
    ++in_flight_;
}

void WorkObserver::work_finished(const std::function<std::shared_ptr<c10d::WorkInfo>()>& info) {
    Hook hook;
    {
        const std::lock_guard lock(mutex_);
        hook = hook_;
    }
    if (hook) hook(info());
    const std::lock_guard lock(mutex_);
    if (--in_flight_ == 0) idle_.notify_all();
}

void WorkObserver::wait_for_works() {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [this] { return in_flight_ == 0; });
}

}  // namespace pccl::backend
