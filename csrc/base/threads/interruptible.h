// SPDX-License-Identifier: Apache-2.0

// Waits that signal handlers may end, although handlers run on one thread only and may call any
// function.
//
// So the blocking work runs on a thread of its own, with any locks, while the caller holds none and
// checks for signals.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <string>
#include <type_traits>

#include <pccl/status.h>
#include "csrc/base/threads/background_thread.h"

namespace pccl {

/// Request to end a wait, set by another thread.
class Cancellation {
   public:
    /// Sets the request; call it once.
    void set(const Status& why) {
        why_ = why;
        is_set_.store(true);
    }
    /// Returns the flag for Deadline::unless().
    [[nodiscard]] const std::atomic<bool>& is_set() const { return is_set_; }
    /// Returns the reason of a request that is set.
    [[nodiscard]] const Status& why() const { return why_; }

   private:
    Status why_;
    std::atomic<bool> is_set_{false};
};

/// Returns the Result of `work(cancellation)`, which runs on a thread of that name. Meanwhile this
/// thread calls `interrupted` ten times a second. An error of `interrupted` sets the cancellation,
/// and is returned once the work has ended.
template <typename Work>
std::invoke_result_t<Work, const Cancellation&> run_interruptibly(
    const std::string& thread, const std::function<Status()>& interrupted, const Work& work) {
    constexpr std::chrono::milliseconds kBetweenQuestions{100};
    PCCL_TRY(interrupted());
    Cancellation cancellation;
    std::promise<std::invoke_result_t<Work, const Cancellation&>> promise;
    auto outcome = promise.get_future();
    const BackgroundThread worker(thread, [&] { promise.set_value(work(cancellation)); });
    Status reason;
    while (reason.is_ok() && outcome.wait_for(kBetweenQuestions) != std::future_status::ready)
        reason = interrupted();
    if (!reason.is_ok()) cancellation.set(reason);
    auto result = outcome.get();
    PCCL_TRY(reason);
    return result;
}

}  // namespace pccl
