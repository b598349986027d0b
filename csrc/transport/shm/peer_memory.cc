#include "csrc/transport/shm/peer_memory.h"

#include <cstring>
#include <utility>

namespace pccl::transport::shm {
namespace {

Status ended() { return Status::unavailable("the peer has ended the registration of this memory"); }

}  // namespace

Result<std::shared_ptr<RmaPeerMemory>> PeerMemory::open(const abi::MemoryDescriptor& memory,
                                                        pid_t owner) {
    PCCL_ASSIGN_OR_RETURN(MemoryKey key, key_on_this_host(memory));
    key.ledger.pid = owner;
    PCCL_ASSIGN_OR_RETURN(PeerLine line, PeerLine::map(key.ledger, key.line));
    if (!line.is_open(memory.nonce)) return ended();
    std::shared_ptr<PeerMemory> peer(new PeerMemory(owner, key, memory.nonce, std::move(line)));
    if (key.file >= 0) {
        PCCL_ASSIGN_OR_RETURN(peer->view_, map_memory(key, memory.bytes));
        return std::shared_ptr<RmaPeerMemory>(std::move(peer));
    }
    const Status probed = sys::read_process_pieces(owner, peer->mark_, {});
    if (!probed.is_ok()) return Status::unsupported(probed.message());
    return std::shared_ptr<RmaPeerMemory>(std::move(peer));
}

Status PeerMemory::copy(RmaOp op, std::span<sys::ProcessPiece> pieces) const {
    if (!is_mapped())
        for (sys::ProcessPiece& piece : pieces) piece.there += address_;
    return op == RmaOp::kRead ? read(pieces) : write(pieces);
}

bool PeerMemory::has_owner() const { return sys::read_process_pieces(owner_, mark_, {}).is_ok(); }

void PeerMemory::copy_mapped(RmaOp op, std::span<const sys::ProcessPiece> pieces) const {
    for (const sys::ProcessPiece& piece : pieces) {
        std::byte* const there = view_->memory.data() + piece.there;
        if (op == RmaOp::kRead)
            std::memcpy(piece.here.data(), there, piece.here.size());
        else
            std::memcpy(there, piece.here.data(), piece.here.size());
    }
}

Status PeerMemory::read(std::span<const sys::ProcessPiece> pieces) const {
    if (is_mapped()) {
        copy_mapped(RmaOp::kRead, pieces);
        return is_open() ? Status::ok() : ended();
    }
    // The kernel reads the mark last: no look at the line is needed.
    const Status status = sys::read_process_pieces(owner_, mark_, pieces);
    return status.is_ok() || is_open() ? status : ended();
}

Status PeerMemory::write(std::span<const sys::ProcessPiece> pieces) const {
    if (!line_.enter(mark_.value)) return ended();
    Status status;
    if (is_mapped())
        copy_mapped(RmaOp::kWrite, pieces);
    else
        status = sys::write_process_pieces(owner_, mark_, pieces);
    return line_.leave(mark_.value) ? status : ended();
}

}  // namespace pccl::transport::shm
