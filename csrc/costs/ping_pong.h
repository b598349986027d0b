// SPDX-License-Identifier: Apache-2.0

// Ping-pong between two threads: a thread on another core that runs tasks while the measuring
// thread waits, and the latency between the two, over a cache line or by a wake-up.
#pragma once

#include <sched.h>

#include <atomic>
#include <functional>

#include <pccl/deadline.h>
#include <pccl/status.h>
#include "csrc/base/threads/background_thread.h"
#include "csrc/costs/machine_costs.h"
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

/// Binds `peer_thread` to another core than this thread's, at a medium distance, and measures
/// `core_round_trip`. Returns false, without effect, if there is none.
[[nodiscard]] bool meet_on_another_core(PingPongThread& peer_thread, MachineCosts& into,
                                        Deadline deadline);
/// Measures the wake-up of `peer_thread` on its core.
void measure_wake(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline);
/// Binds `peer_thread` to this thread's core and measures a wake-up between the two.
void measure_shared_core(PingPongThread& peer_thread, MachineCosts& into, Deadline deadline);

}  // namespace pccl::costs
