// SPDX-License-Identifier: Apache-2.0

// Queue of messages that are sent to peers once no lock of a connection is held.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include "csrc/p2p/connection/control_message.h"
#include "csrc/p2p/connection/handoff_lock.h"

namespace pccl::p2p {

class Connection;

/// Thread-safe.
class DeferredSends {
   public:
    explicit DeferredSends(transport::Waiter& waiter) : sending_(waiter) {}

    /// Queues a message. May be called under locks of connections.
    void add(std::shared_ptr<Connection> to, ControlMessage message);
    /// Returns the number of messages that are not sent yet.
    [[nodiscard]] std::size_t count_to(const Connection& peer) const;
    /// Sends messages in order while there is room; returns whether any was sent. Drops messages to
    /// lost peers. Does nothing while another thread sends.
    bool send();
    /// Drops the messages to a lost peer.
    void forget(const Connection& peer);

   private:
    struct DeferredSend {
        std::shared_ptr<Connection> to;
        ControlMessage message;
    };

    HandoffLock sending_;       // held by the sending thread; locked before mutex_
    mutable std::mutex mutex_;  // locked after those of connections
    std::vector<DeferredSend> deferred_sends_;
};

}  // namespace pccl::p2p
