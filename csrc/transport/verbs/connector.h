// SPDX-License-Identifier: Apache-2.0

// Connection of the queue pairs of one link, or of one lane of one-sided access, once both ends
// have described themselves over the authenticated control plane (link_exchange.h):
//
//     initiator                                        responder
//       | -- its ends --------------------------------> |  makes its queue pairs, start()
//       | <- its ends, with a door for rdma_cm -------- |  describe()
//       |    start()                                    |
//       | == rdma_cm: token and index of a pair ======> |  advance()
//
// Directly, start() connects at once, and there is no third step.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/transport/doorbell.h"
#include "csrc/transport/verbs/link_exchange.h"
#include "csrc/transport/verbs/queue_pair.h"

namespace pccl::transport::verbs {

/// One thread at a time.
class Connector {
   public:
    enum class Role { kInitiator, kResponder };
    Connector() = default;
    virtual ~Connector() = default;
    Connector(const Connector&) = delete;
    Connector& operator=(const Connector&) = delete;

    /// Begins to connect `pairs` to those of the peer, in their order. The pairs outlive advance();
    /// `peer` has at least as many.
    virtual Status start(std::span<QueuePair* const> pairs, std::span<const LaneEnd> peer) = 0;
    /// Adds to the ends of a responder's pairs, after start(), what the initiator needs.
    virtual void describe(std::span<LaneEnd> ends) const = 0;
    /// Returns true once all pairs are connected. Does not block; kTimeout after some seconds.
    virtual Result<bool> advance() = 0;
    /// Returns a descriptor that is readable when advance() has something to do; -1: none is
    /// needed. It is open as long as the connector exists.
    [[nodiscard]] virtual int event_fd() const = 0;
};

/// Connector whose events end the sleeps of a waiter.
class WatchedConnector {
   public:
    WatchedConnector(std::unique_ptr<Connector> connector, Waiter& waiter)
        : connector_(std::move(connector)), waiter_(waiter) {}
    ~WatchedConnector() {
        if (is_watched_) waiter_.unwatch(connector_->event_fd());
    }
    WatchedConnector(const WatchedConnector&) = delete;
    WatchedConnector& operator=(const WatchedConnector&) = delete;

    /// As of Connector, and begins the watch.
    Status start(std::span<QueuePair* const> pairs, std::span<const LaneEnd> peer) {
        PCCL_TRY(connector_->start(pairs, peer));
        if (connector_->event_fd() < 0) return Status::ok();
        PCCL_TRY(waiter_.watch(connector_->event_fd()));
        is_watched_ = true;
        return Status::ok();
    }
    void describe(std::span<LaneEnd> ends) const { connector_->describe(ends); }
    Result<bool> advance() { return connector_->advance(); }

   private:
    const std::unique_ptr<Connector> connector_;
    Waiter& waiter_;
    bool is_watched_ = false;
};

}  // namespace pccl::transport::verbs
