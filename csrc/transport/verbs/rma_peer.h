// SPDX-License-Identifier: Apache-2.0

// One-sided access to a peer by RDMA reads and writes.
//
// Reads and writes use queue pairs of their own, which the initiator opens when it first needs one
// (rma_messages.h): a request to memory whose registration has ended breaks its queue pair, and
// must not break the streams. The error is that of the request alone. The requests behind it are
// posted again, on another queue pair or once a new one is open, which is harmless: until a request
// is complete, the bytes of its target are any mixture of old and new.
//
// An immediate behind writes changes this: once it has arrived, the peer's program may own the
// target. The requests of a failed path are therefore held until the peer has ended its queue pair,
// so that no write arrives late, and has answered how many immediates had arrived. Those before the
// last of these are complete; the others are posted again.
#pragma once

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
#include "csrc/transport/verbs/rma_ports.h"
#include "csrc/transport/verbs/rma_requests.h"
#include "csrc/transport/verbs/rma_responders.h"
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
    void post_begun() override;
    [[nodiscard]] bool has_immediates() const override { return true; }
    std::vector<RmaImmediate> post_immediates() override;
    [[nodiscard]] State state_of(const RmaImmediate& posted) const override;
    [[nodiscard]] std::uint64_t lost_pairs() const override { return lost_pairs_; }
    bool has_arrived(const RmaImmediate& of_peer) override {
        return responders_.has_arrived(of_peer);
    }
    [[nodiscard]] bool rings_at_end() const override { return true; }
    [[nodiscard]] bool keeps_stream_order() const override { return false; }

   private:
    class VerbsInFlightCopy;
    static constexpr std::size_t kChain = 32;  // requests of one doorbell
    /// Lane of the initiator.
    struct RmaLane {
        /// kClosing: the pair has failed, and the peer has not answered which immediates arrived.
        enum class State { kClosed, kOpening, kConnecting, kOpen, kClosing, kBroken };
        State state = State::kClosed;
        std::optional<Lane> lane;                     // set from opening on until it is closed
        std::unique_ptr<WatchedConnector> connector;  // set while connecting
        std::deque<VerbsRequest> posted;              // in the order of their ids; held by kClosing
        std::uint64_t first_id = 1;                   // of the first of these
        std::string failure;                          // of a broken one, or one that will be
        std::uint32_t pair = 0;                       // number of the pair
        std::uint32_t immediates = 0;                 // posted on it
        std::uint32_t arrived = 0;                    // of these, as completions show
        std::uint32_t credit = 0;                     // receive requests of the peer, ever

        /// Returns whether it takes an immediate behind `requests` more.
        [[nodiscard]] bool takes_immediate(std::size_t requests) const {
            const bool has_slots = lane && static_cast<std::size_t>(lane->free_slots()) > requests;
            return state == State::kOpen && has_slots && credit > immediates;
        }
    };

    Result<std::vector<VerbsRequest>> requests_of(const std::shared_ptr<VerbsMemory>& memory,
                                                  RmaOp op, const RmaPiecesHere& here,
                                                  const std::shared_ptr<VerbsCopy>& copy) const;
    /// Completes requests and posts waiting ones. An error ends the link.
    Status progress();
    Status finish_requests(std::size_t index);
    void finish_failed(std::size_t index);
    /// Ends the request that broke the lane with the error, if there is one.
    void fail_request(RmaLane& lane, std::size_t at, const Status& error);
    static void complete_first(RmaLane& lane);
    /// Puts the requests of a lane without a queue pair back.
    void put_back(RmaLane& lane);
    /// Posts waiting requests until at most so many are left, or lanes have no room.
    Status post_waiting(std::size_t left = 0);
    Status post_some(RmaLane& lane);
    /// Posts chain_ with one doorbell. After an error its requests wait again.
    Status post_taken(RmaLane& lane);
    Status post_chain(Lane& to);
    Status describe(const VerbsRequest& request, const Lane& to, ibv_send_wr& posted,
                    ibv_sge& piece) const;
    /// Returns whether each lane with requests takes an immediate, `last` behind all waiting ones.
    [[nodiscard]] bool takes_immediates(const RmaLane* last) const;
    Status post_immediate(std::size_t index, std::vector<RmaImmediate>& posted);
    void give_up(RmaLane& lane, std::string reason);
    RmaLane* best_lane();
    Status open_lane(std::size_t index);
    Status answer_messages();
    Status answer(const RmaMessage& message);
    Status take_opened(const RmaMessage& message);
    Status take_closed(const RmaMessage& message);
    Status take_credit(const RmaMessage& message);
    [[nodiscard]] Status protocol_error(const char* what) const;
    /// Continues connections by rdma_cm of both kinds of queue pairs.
    Status advance_connections();
    void continue_connection(RmaLane& lane);
    /// Ends all requests: afterwards no device reads or writes local memory for this peer.
    void end_requests();

    VerbsSendLink& out_;
    RmaMailbox mailbox_;
    const std::shared_ptr<Registrations> registrations_;
    const RmaPorts ports_;
    RmaResponders responders_;
    std::vector<RmaLane> lanes_;
    std::uint64_t lost_pairs_ = 0;
    WaitingRequests waiting_;
    std::vector<VerbsRequest> chain_;  // of the next doorbell; kept to avoid allocations
    GpuFlusher flusher_;
    bool is_ended_ = false;
};

}  // namespace pccl::transport::verbs
