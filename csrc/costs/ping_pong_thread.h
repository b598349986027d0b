// Another thread on another core, which does what it is told while this one waits.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>

#include "csrc/base/background_thread.h"
#include "csrc/base/relax.h"
#include "csrc/base/status.h"
#include "csrc/sys/host.h"

namespace pccl::costs {

/// Looks again and again, for most of what is waited for comes within a microsecond; where both
/// sides share a core, they take turns.
template <typename Look>
void spin_until(const Look& is_there) {
    constexpr int kLooks = 2000;
    for (int look = 0; !is_there(); ++look) {
        if (look < kLooks)
            relax();
        else
            ::sched_yield();
    }
}

class PingPongThread {
   public:
    using Task = std::function<void()>;

    PingPongThread();
    ~PingPongThread();
    PingPongThread(const PingPongThread&) = delete;
    PingPongThread& operator=(const PingPongThread&) = delete;

    /// `task` must outlive end().
    void begin(const Task& task) { task_.store(&task); }
    void end();
    void run(const Task& task);
    /// Where it runs from now on; kUnavailable where it may run on none of them.
    [[nodiscard]] Status run_on(const sys::CoreSet& cores);
    /// How often others took its core away.
    [[nodiscard]] long interruptions();

   private:
    void serve();

    std::atomic<const Task*> task_{nullptr};
    std::atomic<bool> is_over_{false};
    BackgroundThread thread_;  // last: it uses the others
};

/// How often others took this thread's core away.
[[nodiscard]] long interruptions_of_this_thread();

}  // namespace pccl::costs
