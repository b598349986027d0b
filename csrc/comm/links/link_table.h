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
    /// Moves on to the next phase of the network: true once its links are those that the two above
    /// give. kUnsupported where there is one phase.
    virtual Result<bool> switch_phase() {
        return Status::unsupported("switch_phase: this group's network has one phase");
    }
};

}  // namespace pccl::comm
