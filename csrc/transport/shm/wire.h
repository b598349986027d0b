// SPDX-License-Identifier: Apache-2.0

// Peer's side of a shared-memory link, apart from the rings: its doorbell, and the unix socket that
// shows when and why it has left.
#pragma once

#include <sys/types.h>

#include <memory>
#include <utility>

#include <pccl/deadline.h>
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

class PeerWire {
   public:
    /// Takes ownership of `socket`, which is connected and non-blocking.
    PeerWire(const CloseContext& close_context, UniqueFd socket,
             std::unique_ptr<RemoteDoorbell> doorbell)
        : close_reason_(close_context),
          socket_(std::move(socket)),
          doorbell_(std::move(doorbell)) {}

    /// Wakes the peer after a counter moved.
    void ring() { doorbell_->ring(); }
    /// Checks the peer now and then; to be called when there was nothing to do. If the peer has
    /// left, returns the reason that it sent (why_gone), or kPeerLost when it sent nothing or its
    /// process has ended (a fork of it may hold the socket open).
    Status look_idle();
    Status look();  // now
    /// Returns true if the peer's process lived when all loads before this call were made; without
    /// a system call.
    [[nodiscard]] bool is_process_alive() const { return doorbell_->is_owner_alive(); }
    void reset_idle() { idle_ = 0; }
    /// Ends the connection: the peer's look_idle() fails soon, with `reason`.
    void close(const Status& reason) {
        send_close_reason(socket_.get(), reason);
        ring();
    }
    [[nodiscard]] Rank peer() const { return close_reason_.close_context().leaver; }
    /// Returns the peer's process number here. kUnsupported where it is in a pid namespace that
    /// this process does not see.
    [[nodiscard]] Result<pid_t> process() const;

   private:
    [[nodiscard]] bool is_quiet() const;

    CloseReasonReceiver close_reason_;
    UniqueFd socket_;
    std::unique_ptr<RemoteDoorbell> doorbell_;
    int idle_ = 0;
    TimePoint looked_;
};

}  // namespace pccl::transport::shm
