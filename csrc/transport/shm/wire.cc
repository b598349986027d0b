#include "csrc/transport/shm/wire.h"

#include "csrc/base/text.h"

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

Status PeerWire::look() {
    PCCL_TRY(farewell_.listen(socket_.get()));
    if (!doorbell_->owner_has_exited()) return Status::ok();
    return Status::peer_lost(peer(), concat("the process of rank ", peer(), " has ended"));
}

}  // namespace pccl::transport::shm
