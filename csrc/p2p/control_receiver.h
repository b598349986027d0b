// Receivers of the control messages of a peer, but for notifications.
#pragma once

#include <memory>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/base/text.h"
#include "csrc/p2p/control_message.h"

namespace pccl::p2p {

class Connection;

/// The error of a peer whose messages make no sense.
[[nodiscard]] inline Status protocol_error(std::string_view what) {
    return Status::peer_lost(kNoRank,
                             concat("protocol error: the peer's session refers to ", what));
}

class ControlReceiver {
   public:
    virtual ~ControlReceiver() = default;

    // From connections, under their locks:

    /// kPeerLost where it makes no sense.
    virtual Status receive(const std::shared_ptr<Connection>& from, ControlMessage message) = 0;
    /// The same message will be received once memory of GPUs has what came before it, or never.
    virtual void preview(const ControlMessage& /*message*/) {}
    /// The connection tells that it is lost by now.
    virtual void lost(const Connection& connection, const Status& why) = 0;

    // From every thread, without:

    /// Does what is to be done about what was received; whether that was anything.
    virtual bool advance() = 0;
};

}  // namespace pccl::p2p
