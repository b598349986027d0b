// Runs callbacks of users on a thread of their own.
//
// A future's callback may block, for example in another collective. On the thread that makes
// collectives progress it would wait for itself.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/background_thread.h"
#include "csrc/base/callback_guard.h"
#include "csrc/base/clock.h"

namespace pccl::backend {

class CallbackRunner {
   public:
    CallbackRunner() = default;
    /// Waits for nothing: the last reference may go on a thread that a callback waits for. What was
    /// given is run all the same.
    ~CallbackRunner();
    CallbackRunner(const CallbackRunner&) = delete;
    CallbackRunner& operator=(const CallbackRunner&) = delete;

    /// Callbacks start in the order of calls.
    void run(std::function<void()> callback);
    /// Waits until all that was given has run, except for a callback that calls this itself; false
    /// when `deadline` has passed before.
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
