// SPDX-License-Identifier: Apache-2.0

// Target of one-sided access by RDMA: the queue pairs that a peer has opened here, and the
// immediates that arrive on them behind its writes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "csrc/transport/rma/immediates.h"
#include "csrc/transport/verbs/connector.h"
#include "csrc/transport/verbs/queue_pair.h"
#include "csrc/transport/verbs/rma_messages.h"
#include "csrc/transport/verbs/rma_ports.h"

namespace pccl::transport::verbs {

class RmaResponders {
   public:
    /// All outlive this; `peer_name` is for the log.
    RmaResponders(RmaMailbox& mailbox, const RmaPorts& ports, ConnectWay way,
                  const std::string& peer_name)
        : mailbox_(mailbox), ports_(ports), way_(way), peer_name_(peer_name) {}

    /// Handles kOpen: replaces the queue pair of the lane, and returns the answer.
    RmaMessage open(const RmaMessage& request);
    /// Handles kClose: ends the queue pair of the lane, so that no request of it arrives any more,
    /// and returns how many immediates have.
    RmaMessage close(const RmaMessage& request);
    /// Continues connections by rdma_cm.
    void advance();
    /// Implements RmaImmediates::has_arrived().
    bool has_arrived(const RmaImmediate& immediate);

   private:
    struct Responder {
        std::unique_ptr<QueuePair> pair;
        std::unique_ptr<WatchedConnector> connector;  // until the pair is connected
        std::uint32_t number = 0;                     // of the pair, which may have ended
        std::uint32_t arrived = 0;                    // immediates
        std::uint32_t credited = 0;                   // receive requests that were posted again
        std::uint32_t received = 0;                   // completed receive requests
    };

    void drop(Responder& responder, const std::string& why);
    /// Takes the next completion of a receive request; returns false if there is none.
    bool take_arrival(std::size_t lane);
    /// Posts receive requests again, and sends the peer credit for immediates.
    void replenish(std::size_t lane);

    RmaMailbox& mailbox_;
    const RmaPorts& ports_;
    const ConnectWay way_;
    const std::string& peer_name_;
    std::array<Responder, LinkEnd::kMostLanes> responders_;
};

}  // namespace pccl::transport::verbs
