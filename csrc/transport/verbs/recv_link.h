// SPDX-License-Identifier: Apache-2.0

// Receiving end of an RDMA link (send_link.h): the peer writes into registered rings here, and the
// bytes are read in place.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "csrc/base/ids.h"
#include "csrc/transport/link.h"
#include "csrc/transport/peer_watch.h"
#include "csrc/transport/sticky_status.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/arrivals.h"
#include "csrc/transport/verbs/failover.h"
#include "csrc/transport/verbs/lanes.h"
#include "csrc/transport/verbs/link_pages.h"

namespace pccl::transport::verbs {

struct RecvLinkParts {
    Rank peer = kNoRank;
    std::string peer_name;
    Lanes lanes;
    std::array<LinkMemory, kChannels> rings;
    LinkMemory slots;    // a LaneSlot for each lane, which the sender writes
    LinkMemory credits;  // a CreditPage, of which the sender has a copy
    LinkEnd here;        // as the sender has it
    PeerRange sender;    // its CreditPage
    PeerWatch watch;
};

class VerbsRecvLink final : public RecvLink {
   public:
    explicit VerbsRecvLink(RecvLinkParts parts) : parts_(std::move(parts)) {}
    ~VerbsRecvLink() override;
    VerbsRecvLink(const VerbsRecvLink&) = delete;
    VerbsRecvLink& operator=(const VerbsRecvLink&) = delete;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kVerbs; }
    Result<Bytes> peek(ChannelId channel) override;
    void consume(ChannelId channel, std::size_t count) override;
    Result<std::size_t> receive(ChannelId channel, MutableBytes into) override;
    Status look() override;
    void abort(const Status& reason) override;

   private:
    struct Stream {
        Arrivals arrivals;
        std::uint64_t consumed = 0;
        std::uint64_t credited = 0;  // consumed, as reported to the sender
        bool shown = false;          // set by a peek() after which no byte was consumed
    };
    [[nodiscard]] std::size_t ring_bytes() const { return parts_.here.ring_bytes; }
    /// Takes arrivals of all streams.
    Status refresh();
    /// Takes a completion of a lane.
    Status take(const WorkCompletion& completion, std::size_t lane);
    Status take_piece(const WorkCompletion& completion);
    /// Takes a lane out of use, and reports that to the sender. An error ends the link: no lane is
    /// left.
    Status lose_lane(std::size_t lane, const Status& reason);
    Status look_at_lanes();
    /// Reports lost lanes to the sender that no lane in use has reported, unless it has sent a list
    /// for them.
    Status report_lost_lanes();
    /// Closes the lane that the sender has lost, and answers which pieces have arrived, on the lane
    /// that the request came on.
    Status answer_failover(std::size_t carrier);
    Status post_write(Lane& lane, ibv_sge memory, std::uint64_t offset, std::uint32_t immediate);
    /// Takes what has arrived without immediate on a lane.
    Status take_tails(std::size_t lane);
    Status take_tail(ChannelId channel, const LaneSlot::Tail& tail);
    /// Takes everything that has arrived on a lane, after which nothing more can.
    Status close_lane(std::size_t lane);
    /// Adds a part of a stream, which must be within the ring.
    Status add(Stream& stream, std::uint64_t begin, std::uint64_t bytes);
    /// Returns credit to the sender where it has too little.
    Status return_credit();
    [[nodiscard]] bool owes_credit() const;
    Status send_credit();
    /// Returns why the peer is gone, once no earlier bytes of it can still arrive.
    Status look_idle();
    Status settled(const Status& gone);
    Status fail(const Status& fault);
    Status malformed(std::string_view what) const;
    [[nodiscard]] const LaneSlot& slot(std::size_t lane) const {
        return reinterpret_cast<const LaneSlot*>(parts_.slots.data())[lane];
    }
    [[nodiscard]] CreditPage& credits() const {
        return *reinterpret_cast<CreditPage*>(parts_.credits.data());
    }

    RecvLinkParts parts_;
    std::array<Stream, kChannels> streams_{};
    std::array<std::uint64_t, LinkEnd::kMostLanes> reposted_{};  // receive requests, ever
    std::array<std::uint64_t, LinkEnd::kMostLanes>
        credited_{};                                     // of these, as reported to the sender
    std::array<bool, LinkEnd::kMostLanes> is_closed_{};  // nothing more arrives on these
    std::array<bool, LinkEnd::kMostLanes> is_listed_{};  // the sender has sent a list for these
    std::array<std::optional<std::size_t>, LinkEnd::kMostLanes>
        reporter_{};  // lane on which the loss of a lane was reported
    int idle_ = 0;
    Status fault_;  // of the last lane
    TimePoint gone_{};
    Status lost_;  // why the peer is gone; returned on each channel after its bytes
    StickyStatus status_;
};

}  // namespace pccl::transport::verbs
