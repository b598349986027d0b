// SPDX-License-Identifier: Apache-2.0

// Lock whose holder does the work of the threads that find it held.
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
#include <mutex>

#include "csrc/transport/doorbell.h"

namespace pccl::p2p {

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

}  // namespace pccl::p2p
