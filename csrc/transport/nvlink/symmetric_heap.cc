// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/symmetric_heap.h"

#include <algorithm>
#include <span>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/unix_socket.h"

namespace pccl::transport::nvlink {
namespace {

constexpr std::byte kHeap{'H'};

Status blame(const Status& why, Rank peer) {
    return {why.code(), concat("rank ", peer, "'s heap: ", why.message()), peer};
}

}  // namespace

Result<std::unique_ptr<SymmetricHeap>> SymmetricHeap::create(const Options& options,
                                                             const PeerSockets& sockets,
                                                             Deadline deadline) {
    std::unique_ptr<SymmetricHeap> heap(new SymmetricHeap(options));
    HeapRange& own = heap->ranges_[at(sockets.rank())];
    PCCL_ASSIGN_OR_RETURN(own, heap->stock_->claim(options.bytes));
    heap->bytes_ = own.extent.bytes;
    PCCL_TRY(heap->hand_out(own, sockets, deadline));
    PCCL_TRY(heap->take(sockets, deadline));
    if (!options.maps_later) PCCL_TRY(heap->map());
    return heap;
}

Status SymmetricHeap::map() {
    for (Rank rank = 0; rank < abi::kMostDevices; ++rank) PCCL_TRY(map(rank));
    return Status::ok();
}

Status SymmetricHeap::map(Rank owner) {
    const Status mapped = map(ranges_[at(owner)], offers_[at(owner)]);
    return mapped.is_ok() ? mapped : blame(mapped, owner);
}

Status SymmetricHeap::map(HeapRange& range, Offer& offer) {
    if (offer.memory.is_open()) {
        PCCL_ASSIGN_OR_RETURN(range, stock_->join(offer.memory, offer.extent));
        offer = {};
    }
    return range.memory == nullptr ? Status::ok() : stock_->map(range);
}

PeerAddresses SymmetricHeap::bases() const {
    PeerAddresses bases{};
    std::ranges::transform(ranges_, bases.begin(), &HeapRange::address);
    return bases;
}

Status SymmetricHeap::hand_out(const HeapRange& own, const PeerSockets& sockets,
                               Deadline deadline) const {
    PCCL_ASSIGN_OR_RETURN(const UniqueFd memory, own.memory->descriptor());
    const int descriptor = memory.get();
    for (Rank peer = 0; peer < sockets.size(); ++peer) {
        if (peer == sockets.rank()) continue;
        const int socket = sockets.of(peer);
        Status sent = send_fds(socket, kHeap, {&descriptor, 1}, deadline);
        if (sent.is_ok())
            sent = sys::send_all(socket, std::as_bytes(std::span(&own.extent, 1)), deadline);
        if (!sent.is_ok()) return blame(sent, peer);
    }
    return Status::ok();
}

Status SymmetricHeap::take(const PeerSockets& sockets, Deadline deadline) {
    for (Rank peer = 0; peer < sockets.size(); ++peer) {
        if (peer == sockets.rank()) continue;
        auto offer = receive_offer(sockets.of(peer), deadline);
        if (!offer.is_ok()) return blame(offer.status(), peer);
        if (offer->extent.bytes != bytes_)
            return blame(Status::invalid_argument(concat("a heap of ", offer->extent.bytes,
                                                         " bytes, not ", bytes_, " as here")),
                         peer);
        offers_[at(peer)] = std::move(*offer);
    }
    return Status::ok();
}

Result<SymmetricHeap::Offer> SymmetricHeap::receive_offer(int socket, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(auto fds, receive_fds(socket, kHeap, deadline));
    if (fds.size() != 1) return Status::peer_lost(kNoRank, "a peer sent no memory");
    Offer offer{.memory = std::move(fds.front()), .extent = {}};
    PCCL_TRY(
        sys::receive_all(socket, std::as_writable_bytes(std::span(&offer.extent, 1)), deadline));
    return offer;
}

}  // namespace pccl::transport::nvlink
