// The peer's side of a shared-memory link, apart from the rings: its doorbell, and the unix socket
// that tells when and why it has left.
#pragma once

#include <sys/types.h>

#include <memory>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/transport/control/close_reason.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

class PeerWire {
   public:
    /// `socket` is connected and non-blocking.
    PeerWire(const CloseContext& close_context, UniqueFd socket,
             std::unique_ptr<RemoteDoorbell> doorbell)
        : close_reason_(close_context),
          socket_(std::move(socket)),
          doorbell_(std::move(doorbell)) {}

    /// Tells the peer that its counters moved.
    void ring() { doorbell_->ring(); }
    /// To be called when there was nothing to do; looks at the peer now and then. When it has left:
    /// what it sent (why_gone), or kPeerLost when it sent nothing or its process has ended (a fork
    /// of it may hold the socket open).
    Status look_idle();
    Status look();  // now
    /// Whether the peer's process lived when all loads before this call were made, as far as that
    /// is known without a system call.
    [[nodiscard]] bool is_process_alive() const { return doorbell_->is_owner_alive(); }
    void reset_idle() { idle_ = 0; }
    /// Ends the connection: the peer's look_idle() fails soon, with `reason`.
    void close(const Status& reason) {
        send_close_reason(socket_.get(), reason);
        ring();
    }
    [[nodiscard]] Rank peer() const { return close_reason_.close_context().leaver; }
    /// Its number here. kUnsupported where it is in a pid namespace that this process does not see.
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
