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
    return {why.code(), concat("rank ", peer, "'s GPU memory: ", why.message()), peer};
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
    return heap;
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
        auto taken = take_from(sockets.of(peer), deadline);
        if (!taken.is_ok()) return blame(taken.status(), peer);
        ranges_[at(peer)] = std::move(*taken);
    }
    return Status::ok();
}

Result<HeapRange> SymmetricHeap::take_from(int socket, Deadline deadline) {
    PCCL_ASSIGN_OR_RETURN(const auto fds, receive_fds(socket, kHeap, deadline));
    if (fds.size() != 1) return Status::peer_lost(kNoRank, "a peer sent no memory");
    HeapExtent extent;
    PCCL_TRY(sys::receive_all(socket, std::as_writable_bytes(std::span(&extent, 1)), deadline));
    if (extent.bytes != bytes_)
        return Status::invalid_argument(
            concat("a heap of ", extent.bytes, " bytes, not ", bytes_, " as here"));
    return stock_->join(fds.front(), extent);
}

}  // namespace pccl::transport::nvlink
