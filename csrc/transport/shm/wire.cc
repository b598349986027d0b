#include "csrc/transport/shm/wire.h"

#include <array>

#include "csrc/base/text.h"
#include "csrc/sys/socket/socket.h"

namespace pccl::transport::shm {
namespace {

// The clock costs more than an empty look at a ring, and a socket much more.
constexpr int kFreeLooks = 64;
constexpr Duration kBetweenLooks = std::chrono::milliseconds(20);

}  // namespace

Status PeerWire::look_idle() {
    if (++idle_ < kFreeLooks) return Status::ok();
    const TimePoint now = system_clock().now();
    if (now - looked_ < kBetweenLooks) return Status::ok();
    looked_ = now;
    return look();
}

Status PeerWire::look() const {
    std::array<std::byte, 1> unexpected;
    if (!sys::receive_some(socket_.get(), unexpected).is_ok())
        return Status::peer_lost(peer_, concat("rank ", peer_, " closed its connection"));
    if (doorbell_->owner_has_exited())
        return Status::peer_lost(peer_, concat("the process of rank ", peer_, " has ended"));
    return Status::ok();
}

void PeerWire::close() { sys::shut_down(socket_.get()); }

}  // namespace pccl::transport::shm
