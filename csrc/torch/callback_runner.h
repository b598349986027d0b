// SPDX-License-Identifier: Apache-2.0

// Runner of users' callbacks on threads of their own.
//
// A future's callback may block, for example in another collective. On the progress thread it would
// deadlock.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/threads/background_thread.h"
#include "csrc/base/threads/callback_guard.h"

namespace pccl::backend {

class CallbackRunner {
   public:
    CallbackRunner() = default;
    /// Does not wait: a callback may wait for the thread that drops the last reference. Callbacks
    /// that were passed to run() still run.
    ~CallbackRunner();
    CallbackRunner(const CallbackRunner&) = delete;
    CallbackRunner& operator=(const CallbackRunner&) = delete;

    /// Queues a callback. Callbacks start in the order of the calls.
    void run(std::function<void()> callback);
    /// Waits until all queued callbacks have run, except one that calls this itself. Returns false
    /// when `deadline` passes first.
    [[nodiscard]] bool drain(Deadline deadline);

   private:
    struct Queue {
        std::mutex mutex;
        std::condition_variable changed;
        std::deque<std::function<void()>> callbacks;
        std::size_t idle = 0;  // threads that wait
        CallbackGuard running;
        bool is_closed = false;
    };

    static void serve(Queue& queue);

    const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
    std::vector<std::unique_ptr<BackgroundThread>> threads_;  // guarded by the queue's mutex
};

}  // namespace pccl::backend
