// SPDX-License-Identifier: Apache-2.0
#include "csrc/p2p/session/listener.h"

namespace pccl::p2p {

bool Listener::progress() {
    const std::unique_lock handshaking(handshake_lock_, std::try_to_lock);
    if (!handshaking.owns_lock()) return false;
    {
        const std::lock_guard lock(mutex_);
        in_handshake_.splice(in_handshake_.end(), callers_);
    }
    const std::size_t before = in_handshake_.size();
    in_handshake_.remove_if([this](Caller& caller) { return !progress_handshake(caller); });
    awaits_handshake_.store(!in_handshake_.empty());
    return in_handshake_.size() != before;
}

bool Listener::progress_handshake(Caller& caller) {
    auto handshake = caller.reader.next(*caller.link);
    if (handshake.is_ok() && !*handshake) {
        if (!caller.deadline.passed()) return true;
        handshake = Status::timeout("a session connects, and sends no handshake in time");
    }
    Status status = handshake.status();
    if (status.is_ok())
        status = take_handshake_(std::move(**handshake), std::move(caller.link));
    else
        caller.link->abort(status);
    if (!status.is_ok()) refuse_(status);
    return false;
}

}  // namespace pccl::p2p
