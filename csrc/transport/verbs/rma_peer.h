// SPDX-License-Identifier: Apache-2.0

// One-sided access to a peer by RDMA reads and writes.
//
// Reads and writes use queue pairs of their own, which the initiator opens when it first needs one
// (rma_messages.h): a request to memory whose registration has ended breaks its queue pair, and
// must not break the streams. The error is that of the request alone. The requests behind it are
// posted again, on another queue pair or once a new one is open, which is harmless: until a request
// is complete, the bytes of its target are any mixture of old and new.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "csrc/transport/rma/copy_link.h"
#include "csrc/transport/verbs/connector.h"
#include "csrc/transport/verbs/gpu_flush.h"
#include "csrc/transport/verbs/lanes.h"
#include "csrc/transport/verbs/port.h"
#include "csrc/transport/verbs/recv_link.h"
#include "csrc/transport/verbs/registrations.h"
#include "csrc/transport/verbs/rma_messages.h"
#include "csrc/transport/verbs/rma_requests.h"
#include "csrc/transport/verbs/send_link.h"

namespace pccl::transport::verbs {

class VerbsPeer final : public RmaPeer {
   public:
    /// Both links lead to the peer and outlive this; so do the ports' waiters.
    VerbsPeer(VerbsSendLink& out, VerbsRecvLink& in, std::shared_ptr<Registrations> registrations,
              std::vector<std::shared_ptr<Port>> ports, int pairs_of_port);

    Result<std::shared_ptr<RmaPeerMemory>> open(const abi::MemoryDescriptor& memory) override;
    /// Is never called: devices move all bytes.
    RmaCopied copy(RmaPeerMemory& memory, const RmaCopy& wanted) override;
    std::unique_ptr<RmaInFlightCopy> begin(const std::shared_ptr<RmaPeerMemory>& memory, RmaOp op,
                                           const RmaPiecesHere& here) override;
    Status advance() override;
    [[nodiscard]] bool rings_at_end() const override { return true; }
    [[nodiscard]] bool keeps_stream_order() const override { return false; }

   private:
    class VerbsInFlightCopy;
    static constexpr std::size_t kChain = 32;  // requests of one doorbell
    /// Lane of the initiator.
    struct RmaLane {
        enum class State { kClosed, kOpening, kConnecting, kOpen, kBroken };
        State state = State::kClosed;
        std::optional<Lane> lane;                     // set from opening on until it is closed
        std::unique_ptr<WatchedConnector> connector;  // set while connecting
        std::deque<VerbsRequest> posted;              // in the order of their ids
        std::uint64_t first_id = 1;                   // of the first of these
        std::string failure;                          // of a broken one
    };

    /// Queue pair of the target.
    struct Responder {
        std::unique_ptr<QueuePair> pair;
        std::unique_ptr<WatchedConnector> connector;  // until the pair is connected
    };

    Result<std::vector<VerbsRequest>> requests_of(const std::shared_ptr<VerbsMemory>& memory,
                                                  RmaOp op, const RmaPiecesHere& here,
                                                  const std::shared_ptr<VerbsCopy>& copy) const;
    /// Completes requests and posts waiting ones. An error ends the link.
    Status progress();
    Status finish_requests(std::size_t index);
    void finish_failed(RmaLane& lane);
    Status post_waiting();
    /// Posts waiting requests with one doorbell. After an error they wait again.
    Status post_some(RmaLane& lane);
    Status post_chain(Lane& to);
    void give_up(RmaLane& lane, std::string reason);
    RmaLane* best_lane();
    Status open_lane(std::size_t index);
    Status answer_messages();
    RmaMessage open_for_peer(const RmaMessage& request);
    Status take_opened(const RmaMessage& message);
    /// Continues connections by rdma_cm of both kinds of queue pairs.
    Status advance_connections();
    void continue_connection(RmaLane& lane);
    [[nodiscard]] std::unique_ptr<WatchedConnector> connector_of(Connector::Role role) const;
    /// Ends all requests: afterwards no device reads or writes local memory for this peer.
    void end_requests();
    [[nodiscard]] std::shared_ptr<Port> port_of(std::size_t lane) const {
        return ports_[lane % ports_.size()];
    }
    [[nodiscard]] std::size_t device_of(const Port& port) const;

    VerbsSendLink& out_;
    RmaMailbox mailbox_;
    const std::shared_ptr<Registrations> registrations_;
    const std::vector<std::shared_ptr<Port>> ports_;
    std::vector<RmaLane> lanes_;
    std::array<Responder, LinkEnd::kMostLanes> responders_;
    WaitingRequests waiting_;
    std::vector<VerbsRequest> chain_;  // of the next doorbell; kept to avoid allocations
    GpuFlusher flusher_;
    bool is_ended_ = false;
};

}  // namespace pccl::transport::verbs
