#include "csrc/torch/callback_runner.h"

#include <utility>

namespace pccl::backend {

CallbackRunner::~CallbackRunner() {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_closed = true;
    queue_->changed.notify_all();
}

void CallbackRunner::run(std::function<void()> callback) {
    const std::lock_guard lock(queue_->mutex);
    queue_->callbacks.push_back(std::move(callback));
    queue_->changed.notify_all();
    if (thread_) return;
    thread_ =
        std::make_unique<BackgroundThread>("pccl-callbacks", [queue = queue_] { serve(*queue); });
}

void CallbackRunner::serve(Queue& queue) {
    std::unique_lock lock(queue.mutex);
    while (true) {
        queue.changed.wait(lock, [&] { return queue.is_closed || !queue.callbacks.empty(); });
        if (queue.callbacks.empty()) return;
        auto callbacks = std::exchange(queue.callbacks, {});
        lock.unlock();
        for (auto& callback : callbacks) std::exchange(callback, nullptr)();
        lock.lock();
    }
}

}  // namespace pccl::backend
