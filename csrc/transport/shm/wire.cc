// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/shm/wire.h"

#include <poll.h>

#include <array>

#include "csrc/base/text/listed.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/socket/descriptors.h"

namespace pccl::transport::shm {
namespace {

// Reading the clock costs more than an empty check of a ring, and a check of the socket much more.
constexpr int kFreeLooks = 64;
constexpr Duration kBetweenSocketLooks = std::chrono::milliseconds(20);

}  // namespace

Status PeerWire::look_idle() {
    if (++idle_ < kFreeLooks) return Status::ok();
    const TimePoint now = system_clock().now();
    if (now - looked_ < kBetweenSocketLooks) return Status::ok();
    looked_ = now;
    return look();
}

Status PeerWire::look() {
    if (is_quiet()) return Status::ok();
    PCCL_TRY(close_reason_.receive(socket_.get()));
    if (!doorbell_->owner_has_exited()) return Status::ok();
    return Status::peer_lost(peer(), concat("the process of ", peer_name(peer()), " has ended"));
}

/// Checks for events with one system call; there are none in the common case.
bool PeerWire::is_quiet() const {
    std::array<pollfd, 2> ends{pollfd{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                               pollfd{.fd = doorbell_->process(), .events = POLLIN, .revents = 0}};
    return ::poll(ends.data(), ends.size(), 0) == 0;
}

Result<pid_t> PeerWire::process() const {
    PCCL_ASSIGN_OR_RETURN(const sys::Credentials peer, sys::peer_credentials(socket_.get()));
    if (peer.pid > 0) return peer.pid;
    return Status::unsupported("the peer is in a pid namespace that is not visible from here");
}

}  // namespace pccl::transport::shm
