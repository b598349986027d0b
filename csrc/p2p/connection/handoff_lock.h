// SPDX-License-Identifier: Apache-2.0

// Lock whose holder does the work of the threads that find it held, and the threads that hold
// ProgressGuards.
//
// The rule for sleeping threads: an event (bytes in a socket, room in a socket, a doorbell) ends
// the sleeps of this process only once, so each woken thread must ensure that some thread handles
// the event afterwards:
//
//   - The holder of the lock makes progress until nothing moves, or wakes the others.
//   - A thread that finds the lock held may sleep: the release of the lock wakes it.
//   - A thread that leaves a connection to its ProgressGuards may sleep: the last of these polls
//     once more at its end, and wakes the others if anything moved (ProgressGuard).
//
// A sleeping thread has therefore seen all events, or a thread that has not wakes it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include <pccl/deadline.h>
#include "csrc/transport/doorbell.h"

namespace pccl::p2p {

/// Lock of that rule.
class HandoffLock {
   public:
    /// `waiter` must outlive the lock.
    explicit HandoffLock(transport::Waiter& waiter) : waiter_(waiter) {}

    void lock() { mutex_.lock(); }
    /// Returns false where the lock is held. Its release then ends all sleeps that are prepared by
    /// now (Waiter::prepare()).
    bool try_lock() {
        if (mutex_.try_lock()) return true;
        missed_.exchange(true);
        // Either the holder has yet to check missed_, or this attempt succeeds.
        return mutex_.try_lock();
    }
    void unlock() {
        mutex_.unlock();
        if (missed_.exchange(false)) waiter_.wake();
    }

   private:
    transport::Waiter& waiter_;
    std::mutex mutex_;
    std::atomic<bool> missed_{false};
};

/// Count of the threads that hold a ProgressGuard of a connection, and the sleep of the progress
/// thread beside them.
class ProgressGuards {
   public:
    void add_guard() {
        guards_.fetch_add(1);
        begun_guards_.fetch_add(1, std::memory_order_relaxed);
    }
    /// Returns whether a thread has yielded to guards since the last call that returned true.
    [[nodiscard]] bool remove_guard() {
        guards_.fetch_sub(1);
        return passed_over_.exchange(false);
    }
    [[nodiscard]] bool are_held() const { return guards_.load() > 0; }
    /// Returns whether the calling thread yields to guards.
    [[nodiscard]] bool yield_to_guards() {
        // The order matters: remove_guard() checks passed_over_ after it has decremented guards_.
        passed_over_.store(true);
        if (guards_.load() > 0) return true;
        passed_over_.store(false);
        return false;
    }
    /// Returns how long the progress thread may sleep while guards are held: a short time after a
    /// new one has begun, `otherwise` if there was none. Only the progress thread calls it.
    [[nodiscard]] Duration idle_sleep(Duration otherwise) {
        const TimePoint now = system_clock().now();
        const std::uint64_t begun = begun_guards_.load(std::memory_order_relaxed);
        if (begun != std::exchange(idled_for_, begun) && now >= idle_end_)
            idle_end_ = now + kIdleSleep;
        return now < idle_end_ ? kIdleSleep : otherwise;
    }

   private:
    // While other threads make progress on a connection, one small transfer after the other:
    // wake-ups by each of them would use their cores.
    static constexpr Duration kIdleSleep = std::chrono::microseconds(100);

    std::atomic<int> guards_{0};
    std::atomic<std::uint64_t> begun_guards_{0};
    // State of the progress thread:
    std::uint64_t idled_for_ = 0;  // begun_guards_ at its last idle sleep
    TimePoint idle_end_{};
    std::atomic<bool> passed_over_{false};  // by a thread that yielded to a ProgressGuard holder
};

}  // namespace pccl::p2p
