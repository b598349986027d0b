// SPDX-License-Identifier: Apache-2.0

// One end of an RDMA link, and at the other end bare queue pairs and memory: there a test writes
// what no correct peer would.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "csrc/base/threads/poller.h"
#include "csrc/base/unique_fd.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/verbs/make_connector.h"
#include "csrc/transport/verbs/recv_link.h"
#include "csrc/transport/verbs/send_link.h"

namespace pccl::fakes {

/// Ends the program where what a test stands on cannot be made.
inline void expect_made(bool is_made) {
    if (!is_made) std::abort();
}

/// Connected queue pairs: those of `here` are for the link, those of `peer` for the test.
class VerbsEnds {
   public:
    using Ports = std::vector<std::shared_ptr<transport::verbs::Port>>;
    static constexpr std::uint32_t kRing = transport::verbs::LinkEnd::kLeastRing;
    static constexpr transport::verbs::QueueDepths kDepths{.sends = 128, .receives = 64};
    static constexpr std::size_t kMostPosted = 32;  // before the link takes completions

    /// `pairs` on each port. `waiter` outlives it.
    VerbsEnds(const Ports& ports, int pairs, transport::Waiter& waiter)
        : here(transport::verbs::Lanes::create(ports, pairs, kDepths).value()),
          peer(transport::verbs::Lanes::create(ports, pairs, kDepths).value()),
          waiter_(waiter) {
        expect_made(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, sockets_.data()) == 0);
        peer_socket_.reset(sockets_[1]);
        for (auto* const each : {&here, &peer})
            for (std::size_t i = 0; i < each->count(); ++i)
                expect_made((*each)[i].pair().post_receives(kDepths.receives).is_ok());
        connect(here, peer);
        connect(peer, here);
    }
    transport::PeerWatch watch() {
        return {{.self = 0, .leaver = 1, .ranks = 2},
                transport::WatchedSocket(UniqueFd(sockets_[0]), waiter_)};
    }
    /// Posts the peer's receives again, as a correct peer does.
    void carry_on() {
        for (std::size_t i = 0; i < peer.count(); ++i) {
            int received = 0;
            static_cast<void>(
                peer[i].poll([&](const transport::verbs::WorkCompletion&) { ++received; }));
            if (received > 0) static_cast<void>(peer[i].pair().post_receives(received));
        }
    }
    /// Writes `bytes` bytes at `offset` of memory of the link, with an immediate in the order of
    /// the network, unless many writes have been posted since take_up().
    void write(const transport::verbs::LinkMemory& from, const transport::verbs::PeerRange& into,
               const std::array<std::uint32_t, 3>& offset_bytes_immediate, std::size_t index) {
        transport::verbs::Lane& lane = peer[index];
        if (++posted_ > kMostPosted || lane.free_slots() < 1) return;
        const auto& [offset, bytes, immediate] = offset_bytes_immediate;
        ibv_sge piece{.addr = reinterpret_cast<std::uint64_t>(from.data()),
                      .length = bytes,
                      .lkey = from.local_key(0)};
        ibv_send_wr request{};
        request.sg_list = &piece;
        request.num_sge = 1;
        request.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
        request.imm_data = immediate;
        request.wr.rdma.remote_addr = into.address + offset;
        request.wr.rdma.rkey = into.keys[0];
        lane.prepare(request, true);
        static_cast<void>(lane.post(request));
    }
    /// The link takes completions next.
    void take_up() { posted_ = 0; }

    transport::verbs::Lanes here;
    transport::verbs::Lanes peer;

   private:
    static void connect(transport::verbs::Lanes& lanes, const transport::verbs::Lanes& to) {
        const auto partners = lanes.choose_partners(to.ends());
        const auto connector = transport::verbs::make_connector(
            transport::verbs::ConnectWay::kDirect, transport::verbs::Connector::Role::kInitiator);
        expect_made(connector->start(lanes.pairs(), partners).is_ok());
    }

    transport::Waiter& waiter_;
    std::size_t posted_ = 0;
    std::array<int, 2> sockets_{};
    UniqueFd peer_socket_;
};

[[nodiscard]] inline transport::verbs::LinkMemory verbs_memory(const transport::verbs::Lanes& lanes,
                                                               bool is_ring) {
    using transport::Mapping;
    auto mapping = is_ring ? Mapping::ring(VerbsEnds::kRing)
                           : Mapping::anonymous(transport::verbs::kPageBytes);
    return transport::verbs::LinkMemory::create(std::move(mapping).value(), lanes.adapters(),
                                                transport::verbs::Access::kPeerWrite)
        .value();
}

[[nodiscard]] inline std::array<transport::verbs::LinkMemory, transport::kChannels> verbs_rings(
    const transport::verbs::Lanes& lanes) {
    return {verbs_memory(lanes, true), verbs_memory(lanes, true)};
}

[[nodiscard]] inline transport::verbs::LinkEnd verbs_link_end(
    const std::array<transport::verbs::LinkMemory, transport::kChannels>& rings,
    const transport::verbs::LinkMemory& slots, const transport::verbs::Lanes& lanes) {
    return {.ring_bytes = VerbsEnds::kRing,
            .receives = static_cast<std::uint32_t>(VerbsEnds::kDepths.receives),
            .memory = {rings[0].range(), rings[1].range(), slots.range()},
            .lanes = lanes.ends()};
}

/// Link that sends to rank 1; the test is its receiver.
struct VerbsSenderAlone {
    VerbsSenderAlone(const VerbsEnds::Ports& ports, int pairs, transport::Waiter& waiter,
                     std::shared_ptr<Poller> helper)
        : ends(ports, pairs, waiter) {
        auto credits = verbs_memory(ends.here, false);
        page = credits.data();
        page_range = credits.range();
        auto staging = verbs_rings(ends.here);
        link = std::make_unique<transport::verbs::VerbsSendLink>(
            transport::verbs::SendLinkParts{.peer = 1,
                                            .peer_name = "rank 1",
                                            .lanes = std::move(ends.here),
                                            .credits = std::move(credits),
                                            .staging = std::move(staging),
                                            .receiver = verbs_link_end(rings, slots, ends.peer),
                                            .watch = ends.watch(),
                                            .helper = std::move(helper)});
    }
    [[nodiscard]] transport::verbs::CreditPage& credits() const {
        return *reinterpret_cast<transport::verbs::CreditPage*>(page);
    }
    void write_immediate(std::uint32_t in_network_order, std::size_t lane) {
        ends.write(source, page_range, {0, 0, in_network_order}, lane);
    }

    VerbsEnds ends;
    std::array<transport::verbs::LinkMemory, transport::kChannels> rings = verbs_rings(ends.peer);
    transport::verbs::LinkMemory slots = verbs_memory(ends.peer, false);
    transport::verbs::LinkMemory source = verbs_memory(ends.peer, false);
    std::byte* page = nullptr;  // of the link, which its receiver writes
    transport::verbs::PeerRange page_range;
    std::unique_ptr<transport::verbs::VerbsSendLink> link;
};

/// Link that receives from rank 1; the test is its sender.
struct VerbsReceiverAlone {
    VerbsReceiverAlone(const VerbsEnds::Ports& ports, int pairs, transport::Waiter& waiter)
        : ends(ports, pairs, waiter) {
        auto rings = verbs_rings(ends.here);
        auto slots = verbs_memory(ends.here, false);
        auto credits = verbs_memory(ends.here, false);
        page = slots.data();
        auto here = verbs_link_end(rings, slots, ends.here);
        memory = here.memory;
        link = std::make_unique<transport::verbs::VerbsRecvLink>(
            transport::verbs::RecvLinkParts{.peer = 1,
                                            .peer_name = "rank 1",
                                            .lanes = std::move(ends.here),
                                            .rings = std::move(rings),
                                            .slots = std::move(slots),
                                            .credits = std::move(credits),
                                            .here = std::move(here),
                                            .sender = credited.range(),
                                            .watch = ends.watch()});
    }
    [[nodiscard]] transport::verbs::LaneSlot& slot(std::size_t lane) const {
        return reinterpret_cast<transport::verbs::LaneSlot*>(page)[lane];
    }
    /// As VerbsEnds::write(), of zeros.
    void write(const transport::verbs::PeerRange& into,
               const std::array<std::uint32_t, 3>& offset_bytes_immediate, std::size_t lane) {
        ends.write(source, into, offset_bytes_immediate, lane);
    }

    VerbsEnds ends;
    transport::verbs::LinkMemory credited = verbs_memory(ends.peer, false);
    transport::verbs::LinkMemory source = verbs_memory(ends.peer, true);
    std::byte* page = nullptr;                        // slots of the link
    std::vector<transport::verbs::PeerRange> memory;  // rings and slots of the link
    std::unique_ptr<transport::verbs::VerbsRecvLink> link;
};

}  // namespace pccl::fakes
