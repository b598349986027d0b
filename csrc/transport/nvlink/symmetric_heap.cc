#include "csrc/transport/nvlink/symmetric_heap.h"

#include "csrc/base/scope_exit.h"
#include "csrc/base/text.h"
#include "csrc/transport/parcel.h"

namespace pccl::transport::nvlink {
namespace {

constexpr std::byte kHeap{'H'};

std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }

Status blame(const Status& why, Rank peer) {
    return {why.code(), concat("rank ", peer, "'s GPU memory: ", why.message()), peer};
}

}  // namespace

Result<std::unique_ptr<SymmetricHeap>> SymmetricHeap::create(const Options& options,
                                                             const PeerSockets& sockets,
                                                             Deadline deadline) {
    std::unique_ptr<SymmetricHeap> heap(new SymmetricHeap(options));
    PCCL_TRY(heap->allocate(sockets.rank()));
    PCCL_TRY(heap->hand_out(sockets, deadline));
    PCCL_TRY(heap->take(sockets, deadline));
    return heap;
}

SymmetricHeap::~SymmetricHeap() {
    for (const sys::cuda::DeviceAddress base : bases_)
        if (base != 0) static_cast<void>(driver_.unmap(base, bytes_));
}

Status SymmetricHeap::allocate(Rank self) {
    PCCL_ASSIGN_OR_RETURN(const std::size_t unit, driver_.granularity(options_.device));
    bytes_ = (options_.bytes + unit - 1) / unit * unit;
    PCCL_ASSIGN_OR_RETURN(const sys::cuda::MemoryHandle memory,
                          driver_.create(options_.device, bytes_));
    const ScopeExit release([&] { static_cast<void>(driver_.release(memory)); });
    PCCL_ASSIGN_OR_RETURN(bases_[index(self)], driver_.map(memory, bytes_, options_.device));
    PCCL_TRY(driver_.clear(bases_[index(self)], bytes_));
    PCCL_ASSIGN_OR_RETURN(own_, driver_.export_memory(memory));
    return Status::ok();
}

Status SymmetricHeap::hand_out(const PeerSockets& sockets, Deadline deadline) {
    const int descriptor = own_.get();
    for (Rank peer = 0; peer < sockets.size(); ++peer) {
        if (peer == sockets.rank()) continue;
        const Status sent = send_parcel(sockets.of(peer), kHeap, {&descriptor, 1}, deadline);
        if (!sent.is_ok()) return blame(sent, peer);
    }
    own_.reset();
    return Status::ok();
}

Status SymmetricHeap::take(const PeerSockets& sockets, Deadline deadline) {
    for (Rank peer = 0; peer < sockets.size(); ++peer) {
        if (peer == sockets.rank()) continue;
        auto parcel = receive_parcel(sockets.of(peer), kHeap, deadline);
        if (!parcel.is_ok()) return blame(parcel.status(), peer);
        if (parcel->size() != 1) return Status::peer_lost(peer, "a peer sent no memory");
        auto memory = driver_.import_memory(parcel->front().get());
        if (!memory.is_ok()) return blame(memory.status(), peer);
        const ScopeExit release([&] { static_cast<void>(driver_.release(*memory)); });
        auto base = driver_.map(*memory, bytes_, options_.device);
        if (!base.is_ok()) return blame(base.status(), peer);
        bases_[index(peer)] = *base;
    }
    return Status::ok();
}

}  // namespace pccl::transport::nvlink
