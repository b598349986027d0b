// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/peer_memory.h"

#include <unistd.h>

#include <cstring>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/sys/cpu/streaming.h"

namespace pccl::transport::shm {
namespace {

// For shorter pieces in a random order, plain copies are as fast, from memory as well.
constexpr std::size_t kLeastStreamed = 32 * kKiB;

void copy_bytes(std::byte* dst, const std::byte* src, std::size_t bytes) {
    std::memcpy(dst, src, bytes);
}

Status ended() { return Status::unavailable("the peer has ended the registration of this memory"); }

}  // namespace

Status PeerMemory::outcome(bool was_open) { return was_open ? Status::ok() : ended(); }

Result<std::shared_ptr<PeerMemory>> PeerMemory::open(const abi::MemoryDescriptor& memory,
                                                     pid_t owner,
                                                     std::shared_ptr<GpuMemories> gpus) {
    PCCL_ASSIGN_OR_RETURN(MemoryKey key, key_on_this_host(memory));
    const bool is_of_gpu = memory.kind == abi::MemoryKind::kGpu;
    if (is_of_gpu != key.gpu.has_value())
        return Status::unsupported("GPU memory of the peer that CUDA IPC does not share");
    key.ledger.pid = owner;
    PCCL_ASSIGN_OR_RETURN(PeerLine line, PeerLine::map(key.ledger, key.line));
    if (!line.is_open(memory.nonce)) return ended();
    std::shared_ptr<PeerMemory> peer(new PeerMemory(owner, key, memory.nonce, std::move(line)));
    peer->gpus_ = std::move(gpus);
    PCCL_TRY(is_of_gpu       ? peer->view_for(kOwnDevice).status()
             : key.file >= 0 ? peer->map(key, memory.bytes)
                             : peer->probe());
    return peer;
}

Status PeerMemory::map(const MemoryKey& key, std::uint64_t bytes) {
    PCCL_ASSIGN_OR_RETURN(view_, map_memory(key, bytes));
    return Status::ok();
}

Status PeerMemory::probe() const {
    const Status probed = find_owner();
    return probed.is_ok() ? probed : Status::unsupported(probed.message());
}

Result<GpuView> PeerMemory::view_for(int device) const {
    const auto known = views_.find(device);
    if (known != views_.end()) return known->second;
    auto view = open_view(device);
    if (view.status().code() == StatusCode::kUnsupported && device != kOwnDevice) {
        view = view_for(kOwnDevice);
        if (view.is_ok()) PCCL_TRY(GpuMemories::reach(view->device, device));
    }
    if (view.is_ok()) views_.emplace(device, *view);
    return view;
}

Result<GpuView> PeerMemory::open_view(int device) const {
    PCCL_ASSIGN_OR_RETURN(const int home, gpus_->home_of(*gpu_));
    if (device == kOwnDevice) device = home;
    if (owner_ != ::getpid()) return gpus_->open(*gpu_, device);
    // CUDA IPC is for other processes, and enables peer access of their GPUs by itself.
    PCCL_TRY(GpuMemories::reach(device, home));
    return GpuView{.address = address_, .device = device};
}

Status PeerMemory::copy(const RmaCopy& wanted, bool sees_owner) const {
    if (!is_mapped())
        for (sys::ProcessPiece& piece : wanted.pieces) piece.there += address_;
    if (wanted.op == RmaOp::kWrite && !line_.enter(mark_.value)) return ended();
    const Status status = is_mapped() ? copy_mapped(wanted) : copy_by_kernel(wanted, sees_owner);
    const bool was_open = wanted.op == RmaOp::kWrite ? line_.leave(mark_.value) : is_open();
    return was_open ? status : ended();
}

Status PeerMemory::find_owner() const { return sys::read_process_pieces(owner_, mark_, {}); }

Status PeerMemory::copy_mapped(const RmaCopy& wanted) const {
    for (const sys::ProcessPiece& piece : wanted.pieces) {
        std::byte* const there = view_->memory.data() + piece.there;
        std::byte* const here = piece.here.data();
        const std::size_t bytes = piece.here.size();
        const bool reads = wanted.op == RmaOp::kRead;
        const bool streams = wanted.leaves_caches && bytes >= kLeastStreamed;
        (streams ? stream_bytes : copy_bytes)(reads ? here : there, reads ? there : here, bytes);
    }
    return Status::ok();
}

Status PeerMemory::copy_by_kernel(const RmaCopy& wanted, bool sees_owner) const {
    if (wanted.op == RmaOp::kRead)
        return sees_owner ? sys::read_living_process(owner_, wanted.pieces)
                          : sys::read_process_pieces(owner_, mark_, wanted.pieces);
    for (;;) {
        const sys::ProcessGate gate{line_.gate()};
        PCCL_ASSIGN_OR_RETURN(const bool written,
                              sees_owner
                                  ? sys::write_living_process(owner_, gate, wanted.pieces)
                                  : sys::write_process_pieces(owner_, mark_, gate, wanted.pieces));
        if (written) return Status::ok();
        // The write failed because some registration has ended: either this one, or another, and
        // then this one has a new gate.
        if (!is_open() || line_.gate() == gate.address) return ended();
    }
}

}  // namespace pccl::transport::shm
