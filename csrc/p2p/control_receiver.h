// SPDX-License-Identifier: Apache-2.0

// Interface of the receivers of a peer's control messages, except notifications.
#pragma once

#include <memory>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/text/text.h"
#include "csrc/p2p/control_message.h"

namespace pccl::p2p {

class Connection;

/// Returns the error for a peer whose messages violate the protocol.
[[nodiscard]] inline Status protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank,
                             concat("protocol error: the peer's session refers to ", what));
}

class ControlReceiver {
   public:
    virtual ~ControlReceiver() = default;

    // Called by connections under their locks:

    /// Returns kPeerLost for a message that violates the protocol.
    virtual Status receive(const std::shared_ptr<Connection>& from, ControlMessage message) = 0;
    /// Announces a message that is received later, once GPU memory has the data before it, or
    /// never.
    virtual void preview(const ControlMessage& /*message*/) {}
    /// Reports that the connection is lost.
    virtual void lost(const Connection& connection, const Status& why) = 0;

    // Called by any thread without such locks:

    /// Handles the messages received so far; returns whether there was anything to do.
    virtual bool advance() = 0;
};

}  // namespace pccl::p2p
