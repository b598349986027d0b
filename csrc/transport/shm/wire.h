// The peer's side of a shared-memory link, apart from the rings: its doorbell, and the unix socket
// that tells when it is gone and wakes it when it sleeps in epoll.
#pragma once

#include <memory>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/transport/doorbell.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::shm {

class PeerWire {
   public:
    /// `socket` is connected and non-blocking; `waiter` outlives the object.
    PeerWire(Rank peer, UniqueFd socket, std::unique_ptr<RemoteDoorbell> doorbell, Waiter& waiter);
    ~PeerWire();
    PeerWire(const PeerWire&) = delete;
    PeerWire& operator=(const PeerWire&) = delete;

    /// Tells the peer that its counters moved.
    void ring();
    /// To be called when there was nothing to do; looks at the socket now and then. kPeerLost when
    /// the peer has closed it.
    Status look_idle();
    void reset_idle() { idle_ = 0; }
    /// Ends the connection: the peer's look_idle() fails soon.
    void close();
    [[nodiscard]] Rank peer() const { return peer_; }

   private:
    Status look();

    const Rank peer_;
    UniqueFd socket_;
    std::unique_ptr<RemoteDoorbell> doorbell_;
    Waiter& waiter_;
    int idle_ = 0;
    TimePoint looked_;
};

}  // namespace pccl::transport::shm
