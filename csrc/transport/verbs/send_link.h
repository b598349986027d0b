// SPDX-License-Identifier: Apache-2.0

// Sending end of an RDMA link.
//
//     send()    copies bytes into a registered ring here     | RDMA write with immediate:
//     publish() cuts them into pieces, one write each     ---+-> into the receiver's ring
//     room()    reads the credit page                     <----- RDMA write: bytes consumed
//
// The receiver's ring and this one have the same positions. A position is reused once the receiver
// has consumed it, which also proves that the write has been delivered: no completion is needed for
// that. A link of one lane therefore requests one for every 32nd write only; several lanes use them
// to share the load. Each write with immediate takes one receive request of
// the receiver. While it has none left, the bytes go without immediate, followed by a write of the
// end of the stream (LaneSlot): the sender never waits for the receiver's program.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/base/threads/poller.h"
#include "csrc/transport/link.h"
#include "csrc/transport/peer_watch.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/failover.h"
#include "csrc/transport/verbs/lanes.h"
#include "csrc/transport/verbs/link_pages.h"

namespace pccl::transport::verbs {

struct SendLinkParts {
    Rank peer = kNoRank;
    std::string peer_name;  // "rank 3 at 10.0.0.5:4433", for messages
    Lanes lanes;
    LinkMemory credits;                         // a CreditPage, which the receiver writes
    std::array<LinkMemory, kChannels> staging;  // rings
    LinkEnd receiver;
    PeerWatch watch;
    /// Completes failovers of links that the program does not call any more.
    std::shared_ptr<Poller> helper;
};

class VerbsSendLink final : public SendLink {
   public:
    explicit VerbsSendLink(SendLinkParts parts);
    ~VerbsSendLink() override;
    VerbsSendLink(const VerbsSendLink&) = delete;
    VerbsSendLink& operator=(const VerbsSendLink&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kVerbs; }
    [[nodiscard]] std::size_t capacity(ChannelId channel) const override;
    Result<std::size_t> send(ChannelId channel, Bytes bytes, Flush flush) override {
        return send_gathered(channel, {&bytes, 1}, flush);
    }
    Result<std::size_t> send_gathered(ChannelId channel, std::span<const Bytes> pieces,
                                      Flush flush) override;
    Result<bool> flush(ChannelId channel) override;
    Status look() override;
    void abort(const Status& reason) override;
    [[nodiscard]] Rank peer() const { return parts_.peer; }
    [[nodiscard]] const std::string& peer_name() const { return parts_.peer_name; }
    /// Returns how both ends connect queue pairs.
    [[nodiscard]] ConnectWay way() const { return parts_.receiver.way; }
    /// Returns the ports of its queue pairs, each once.
    [[nodiscard]] std::vector<std::shared_ptr<Port>> ports() const { return parts_.lanes.ports(); }
    /// Checks the devices and the peer now and then, for a caller that waits.
    Status look_now_and_then();

   private:
    /// Positions count the bytes of a stream from its beginning.
    struct Stream {
        std::uint64_t written = 0;     // copied into the ring here
        std::uint64_t published = 0;   // posted
        std::uint64_t consumed = 0;    // by the receiver, when last read
        std::uint64_t tail_begin = 0;  // of the pieces without immediate
        std::uint64_t tail_end = 0;    // likewise; they are under way until it is consumed
    };
    /// Failover of a lane (failover.h).
    struct LaneFailover {
        std::size_t lane = 0;
        std::vector<PostedPiece> pieces;  // uncertain
        std::uint32_t sequence = 0;       // of the request; 0: not sent, or lost with its lane
        std::size_t carrier = 0;          // lane of the request, and of its answer
    };
    /// This link as its helper finds it.
    struct HelpedLink {
        std::mutex mutex;               // held by the thread that uses the link
        VerbsSendLink* link = nullptr;  // guarded by mutex; null: the link is gone
        std::atomic<bool> is_watched{false};
    };
    /// Excludes the helper while the lock lives.
    [[nodiscard]] std::unique_lock<std::mutex> use() const {
        return parts_.lanes.count() > 1 ? std::unique_lock(helped_->mutex)
                                        : std::unique_lock<std::mutex>();
    }
    /// Lets the helper look at this link until all pieces are delivered.
    void watch_delivery();
    [[nodiscard]] bool is_delivered();
    Status look_now_and_then_locked();
    [[nodiscard]] std::size_t ring_bytes() const { return parts_.receiver.ring_bytes; }
    Result<std::size_t> room(ChannelId channel, std::size_t wanted);
    Status read_credit(ChannelId channel);
    /// Takes a counter of the credit page, of which `known` is the last value and `most` the
    /// largest one that can be. Another value ends the link.
    Status take_counter(const PageCounter& counter, std::uint64_t most, std::uint64_t& known);
    void copy_in(ChannelId channel, std::span<const Bytes> pieces, std::size_t count);
    /// Posts what is written and not yet published, as far as the send queues take it.
    Status publish(ChannelId channel);
    /// Posts the piece of `bytes` bytes that begins at Stream::published; false where no queue pair
    /// takes it.
    Result<bool> post_next(ChannelId channel, std::size_t bytes);
    Status post_piece(std::size_t lane, const PostedPiece& piece);
    Result<bool> post_tail(ChannelId channel, std::size_t bytes);
    /// Returns the least loaded lane that has a slot, and a receive request at the receiver;
    /// Lanes::count(): none.
    [[nodiscard]] std::size_t lane_for_immediate();
    [[nodiscard]] bool has_receive(std::size_t lane, std::uint32_t spare = 0);
    [[nodiscard]] bool is_in_tail(ChannelId channel);
    void remember(std::size_t lane, const PostedPiece& piece);
    /// Takes completions of all lanes, and continues failovers. An error ends the link.
    Status poll();
    Status take(const WorkCompletion& completion);
    /// Takes a lane out of use. An error ends the link: no lane is left.
    Status lose_lane(std::size_t lane, const Status& reason);
    Status look_at_lanes();
    Status continue_failover();
    Status send_request(LaneFailover& failover, std::size_t lane);
    Status take_answer();
    Status resend();
    [[nodiscard]] std::byte* mailbox() const { return parts_.credits.data() + kMailbox; }
    /// Returns the reason why the link is broken, once it is known; ok until then.
    Status fail(const Status& fault);
    [[nodiscard]] const CreditPage& credits() const {
        return *reinterpret_cast<const CreditPage*>(parts_.credits.data());
    }

    SendLinkParts parts_;
    const std::shared_ptr<HelpedLink> helped_ = std::make_shared<HelpedLink>();
    std::array<Stream, kChannels> streams_{};
    std::array<std::uint64_t, LinkEnd::kMostLanes> immediates_{};  // sent on each lane
    std::array<std::uint64_t, LinkEnd::kMostLanes> receives_{};    // of CreditPage, as last read
    std::array<std::deque<PostedPiece>, LinkEnd::kMostLanes> posted_;  // possibly not delivered
    std::deque<LaneFailover> failovers_;                               // the first is under way
    std::deque<PostedPiece> unsent_;  // pieces of failed lanes that have not arrived
    std::uint32_t last_request_ = 0;
    int idle_ = 0;
    Status fault_;  // of the last lane; the reason may follow on the socket
    StickyStatus status_;
};

}  // namespace pccl::transport::verbs
