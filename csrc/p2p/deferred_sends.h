// Messages that are sent to peers once no lock of a connection is held.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/p2p/control_message.h"
#include "csrc/p2p/handoff_lock.h"

namespace pccl::p2p {

class Connection;

/// Safe from every thread.
class DeferredSends {
   public:
    explicit DeferredSends(transport::Waiter& waiter) : sending_(waiter) {}

    /// Also under locks of connections.
    void add(std::shared_ptr<Connection> to, ControlMessage message);
    /// Counts those that were not sent yet.
    [[nodiscard]] std::size_t count_to(const Connection& peer) const;
    /// Sends them in their order, as many as there is room for; whether that was any. Those to a
    /// peer that is lost are forgotten. Nothing where another thread is at it.
    bool send();
    /// Of a peer that is lost.
    void forget(const Connection& peer);

   private:
    struct DeferredSend {
        std::shared_ptr<Connection> to;
        ControlMessage message;
    };

    HandoffLock sending_;       // held by the sender; before mutex_
    mutable std::mutex mutex_;  // after those of connections
    std::vector<DeferredSend> deferred_sends_;
};

}  // namespace pccl::p2p
