// SPDX-License-Identifier: Apache-2.0

// Observer of the works of one backend: completion hook, timing, works in flight. Works share it,
// so that they may outlive their backend.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <torch/csrc/distributed/c10d/Work.hpp>

#include "csrc/torch/callback_runner.h"

namespace pccl::backend {

class WorkObserver {
   public:
    using Hook = std::function<void(std::shared_ptr<c10d::WorkInfo>)>;

    /// Sets the hook for works that start from now on.
    void set_hook(Hook hook);
    void enable_timing() { timing_ = true; }
    [[nodiscard]] bool has_hook();
    /// Returns whether works must record their times.
    [[nodiscard]] bool wants_times() const { return timing_.load(std::memory_order_relaxed); }

    /// Returns the runner of users' callbacks that must not run on the caller's thread.
    [[nodiscard]] CallbackRunner& runner() { return runner_; }

    void work_started();
    /// Runs the hook without holding a lock.
    void work_finished(const std::function<std::shared_ptr<c10d::WorkInfo>()>& info);
    /// Waits until the hook has run for every work that started before.
    void wait_for_works();

   private:
    std::atomic<bool> timing_{false};
    std::mutex mutex_;
    std::condition_variable idle_;
    int in_flight_ = 0;
    Hook hook_;
    CallbackRunner runner_;
};

}  // namespace pccl::backend
