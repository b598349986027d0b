// Runs callbacks of users on a thread of their own.
//
// A future's callback may block, for example in another collective. On the thread that makes
// collectives progress it would wait for itself.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/background_thread.h"

namespace pccl::backend {

class CallbackRunner {
   public:
    CallbackRunner() = default;
    /// Returns once the thread, if there is one, has run what it was given. A callback may itself
    /// drop the last reference to its runner.
    ~CallbackRunner();
    CallbackRunner(const CallbackRunner&) = delete;
    CallbackRunner& operator=(const CallbackRunner&) = delete;

    /// In the order of calls. The first one starts the thread.
    void run(std::function<void()> callback);

   private:
    struct Queue {
        std::mutex mutex;
        std::condition_variable changed;
        std::vector<std::function<void()>> callbacks;
        bool is_closed = false;
    };

    static void serve(Queue& queue);

    const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
    std::unique_ptr<BackgroundThread> thread_;  // guarded by the queue's mutex
};

}  // namespace pccl::backend
