// What the executor and the mailbox need of a group's connections.
#pragma once

#include "csrc/schedule/schedule.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

class LinkTable {
   public:
    virtual ~LinkTable() = default;
    /// The link for sending to a peer. The first call begins to connect, later ones go on with it:
    /// null until the peer's process has accepted. kTimeout and kPeerLost name the peer.
    virtual Result<transport::SendLink*> send_link(const schedule::Port& to) = 0;
    /// The link on which a peer sends, or null until it has connected.
    virtual transport::RecvLink* receive_link(const schedule::Port& from) = 0;
};

}  // namespace pccl::comm
