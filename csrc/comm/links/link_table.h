// SPDX-License-Identifier: Apache-2.0

// Interface to a group's links for the executor and the mailbox.
#pragma once

#include "csrc/schedule/schedule.h"
#include "csrc/transport/transport.h"

namespace pccl::comm {

class LinkTable {
   public:
    virtual ~LinkTable() = default;
    /// Returns the link for sending to a peer. The first call starts to connect, later calls
    /// continue: null until the peer's process has accepted. kTimeout and kPeerLost name the peer.
    virtual Result<transport::SendLink*> send_link(const schedule::PeerPort& to) = 0;
    /// Returns the link on which a peer sends, or null until it has connected.
    virtual transport::RecvLink* receive_link(const schedule::PeerPort& from) = 0;
};

}  // namespace pccl::comm
