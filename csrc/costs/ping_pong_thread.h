// SPDX-License-Identifier: Apache-2.0

// Thread on another core that runs tasks while the measuring thread waits.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>

#include <pccl/status.h>
#include "csrc/base/threads/background_thread.h"
#include "csrc/sys/cpu/relax.h"
#include "csrc/sys/host.h"

namespace pccl::costs {

/// Polls until `is_there` returns true. It spins first, because most waits take less than a
/// microsecond, and then yields, because both sides may share a core.
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

    /// Starts `task`, which must stay valid until end() returns.
    void begin(const Task& task) { task_.store(&task); }
    void end();
    void run(const Task& task);
    /// Sets the cores that it runs on; kUnavailable if it may run on none of them.
    [[nodiscard]] Status run_on(const sys::CoreSet& cores);
    /// Returns how often other threads preempted it.
    [[nodiscard]] long interruptions();

   private:
    void serve();

    std::atomic<const Task*> task_{nullptr};
    std::atomic<bool> is_over_{false};
    BackgroundThread thread_;  // last: it uses the other members
};

/// Returns how often other threads preempted this thread.
[[nodiscard]] long interruptions_of_this_thread();

}  // namespace pccl::costs
