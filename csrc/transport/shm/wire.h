// The peer's side of a shared-memory link, apart from the rings: its doorbell, and the unix socket
// that tells when it has left.
#pragma once

#include <memory>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

class PeerWire {
   public:
    /// `socket` is connected and non-blocking.
    PeerWire(Rank peer, UniqueFd socket, std::unique_ptr<RemoteDoorbell> doorbell)
        : peer_(peer), socket_(std::move(socket)), doorbell_(std::move(doorbell)) {}

    /// Tells the peer that its counters moved.
    void ring() { doorbell_->ring(); }
    /// To be called when there was nothing to do; looks at the peer now and then. kPeerLost when it
    /// has closed the socket, or its process has ended (a fork of it may hold the socket open).
    Status look_idle();
    void reset_idle() { idle_ = 0; }
    /// Ends the connection: the peer's look_idle() fails soon.
    void close();
    [[nodiscard]] Rank peer() const { return peer_; }

   private:
    [[nodiscard]] Status look() const;

    const Rank peer_;
    UniqueFd socket_;
    std::unique_ptr<RemoteDoorbell> doorbell_;
    int idle_ = 0;
    TimePoint looked_;
};

}  // namespace pccl::transport::shm
