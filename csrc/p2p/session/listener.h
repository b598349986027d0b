// SPDX-License-Identifier: Apache-2.0

// Listener of a session: the incoming streams whose handshake has not arrived yet.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <utility>

#include <pccl/deadline.h>
#include "csrc/p2p/connection/handoff_lock.h"
#include "csrc/p2p/connection/handshake.h"
#include "csrc/transport/link.h"

namespace pccl::p2p {

class Listener {
   public:
    /// Incoming stream whose handshake has not arrived yet.
    struct Caller {
        std::unique_ptr<transport::RecvLink> link;
        HandshakeReader reader;
        Deadline deadline;
    };
    using Callers = std::list<Caller>;
    /// Callback for a handshake that has arrived, and its stream.
    using TakeHandshake =
        std::function<Status(HandshakeMessage, std::unique_ptr<transport::RecvLink>)>;
    /// Callback for the error of a handshake, which may be that of TakeHandshake.
    using Refuse = std::function<void(const Status&)>;

    /// `mutex` is that of the session's lock. It and `waiter` must outlive the listener.
    Listener(std::mutex& mutex, transport::Waiter& waiter, TakeHandshake take_handshake,
             Refuse refuse)
        : mutex_(mutex),
          handshake_lock_(waiter),
          take_handshake_(std::move(take_handshake)),
          refuse_(std::move(refuse)) {}

    /// Reads handshakes, unless another thread does; returns whether any is over. Call it without
    /// locks of the session.
    bool progress();
    [[nodiscard]] bool awaits_handshake() const { return awaits_handshake_.load(); }

    // Under the session's lock:

    [[nodiscard]] bool has_room() const { return callers_.size() < kMostCallers; }
    void add(std::unique_ptr<transport::RecvLink> link, Deadline deadline) {
        callers_.push_back({std::move(link), {}, deadline});
    }
    /// Moves the streams that no thread reads yet to `callers`.
    void take_new(Callers& callers) { callers.splice(callers.end(), callers_); }

    /// Returns the lock of the thread that reads handshakes. It is locked before the session's.
    [[nodiscard]] HandoffLock& handshake_lock() { return handshake_lock_; }
    /// Under handshake_lock(): moves the streams with a handshake in progress to `callers`.
    void take_in_handshake(Callers& callers) { callers.splice(callers.end(), in_handshake_); }

   private:
    static constexpr std::size_t kMostCallers = 1024;

    /// Returns false once the handshake is over, with or without success.
    bool progress_handshake(Caller& caller);

    std::mutex& mutex_;
    Callers callers_;  // from the acceptor, for the next progress()
    HandoffLock handshake_lock_;
    Callers in_handshake_;                       // guarded by handshake_lock_
    std::atomic<bool> awaits_handshake_{false};  // whether in_handshake_ has any
    const TakeHandshake take_handshake_;
    const Refuse refuse_;
};

}  // namespace pccl::p2p
