// SPDX-License-Identifier: Apache-2.0
#include "csrc/torch/callback_runner.h"

#include <utility>

namespace pccl::backend {

namespace {

constexpr std::size_t kMostThreads = 64;

}  // namespace

CallbackRunner::~CallbackRunner() {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_closed = true;
    queue_->changed.notify_all();
    for (const auto& thread : threads_) thread->release();
}

bool CallbackRunner::drain(Deadline deadline) {
    std::vector<std::unique_ptr<BackgroundThread>> threads;
    std::unique_lock lock(queue_->mutex);
    queue_->is_closed = true;  // makes all threads end once the queue is empty
    queue_->changed.notify_all();
    threads.swap(threads_);
    while (!queue_->callbacks.empty() && !deadline.passed())
        queue_->changed.wait_for(lock, deadline.slice());
    const bool is_begun = queue_->callbacks.empty();
    lock.unlock();
    if (is_begun && queue_->running.await_others(deadline)) return true;
    for (const auto& thread : threads) thread->release();
    return false;
}

void CallbackRunner::run(std::function<void()> callback) {
    const std::lock_guard lock(queue_->mutex);
    queue_->callbacks.push_back(std::move(callback));
    queue_->changed.notify_one();
    if (queue_->callbacks.size() <= queue_->idle || threads_.size() == kMostThreads) return;
    threads_.push_back(
        std::make_unique<BackgroundThread>("pccl-callbacks", [queue = queue_] { serve(*queue); }));
}

void CallbackRunner::serve(Queue& queue) {
    std::unique_lock lock(queue.mutex);
    while (true) {
        ++queue.idle;
        queue.changed.wait(lock, [&] { return queue.is_closed || !queue.callbacks.empty(); });
        --queue.idle;
        if (queue.callbacks.empty()) return;
        auto callback = std::move(queue.callbacks.front());
        queue.callbacks.pop_front();
        queue.running.enter();
        if (queue.callbacks.empty()) queue.changed.notify_all();
        lock.unlock();
        std::exchange(callback, nullptr)();
        queue.running.leave();
        lock.lock();
    }
}

}  // namespace pccl::backend
