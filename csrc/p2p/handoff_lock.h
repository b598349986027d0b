// A lock whose holder takes over what others come for, and hands on what it leaves.
//
// The rule of who may stop looking. News (bytes in a socket, room in one, a ring of the doorbell)
// end sleeps of this process once; whoever is woken must see to it that somebody acts on them
// afterwards:
//
//   - who holds the lock acts: it makes progress until a look moves nothing, or wakes the others;
//   - who finds it held may sleep: it is woken when the lock is released;
//   - who leaves a connection to its ProgressGuards may sleep: the last of these looks once
//     more when it has ended that, and wakes the others if that moved anything (ProgressGuard).
//
// So a thread that sleeps has seen everything there was, or is woken by who has not.
#pragma once

#include <atomic>
#include <mutex>

#include "csrc/transport/doorbell.h"

namespace pccl::p2p {

class HandoffLock {
   public:
    /// `waiter` outlives it.
    explicit HandoffLock(transport::Waiter& waiter) : waiter_(waiter) {}

    void lock() { mutex_.lock(); }
    /// False where it is held: sleeps that are prepared by now (Waiter::prepare()) end when it is
    /// released.
    bool try_lock() {
        if (mutex_.try_lock()) return true;
        missed_.exchange(true);
        // Either it is still held, by somebody who has yet to look at missed_, or this takes it.
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
