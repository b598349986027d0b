// Who hears what a peer's session says, but for notifications.
#pragma once

#include <memory>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/base/text.h"
#include "csrc/p2p/peer_word.h"

namespace pccl::p2p {

class Connection;

/// Of a peer that says what makes no sense.
[[nodiscard]] inline Status nonsense(std::string_view what) {
    return Status::peer_lost(kNoRank, concat("the peer's session speaks of ", what));
}

class WordListener {
   public:
    virtual ~WordListener() = default;

    // From connections, under their locks:

    /// kPeerLost where it makes no sense.
    virtual Status hear(const std::shared_ptr<Connection>& from, PeerWord word) = 0;
    /// The same word will be heard once memory of GPUs has what came before it, or never.
    virtual void foresee(const PeerWord& /*word*/) {}
    /// The connection tells that it is lost by now.
    virtual void lost(const Connection& connection, const Status& why) = 0;

    // From every thread, without:

    /// Does what is to be done about what was heard; whether that was anything.
    virtual bool advance() = 0;
};

}  // namespace pccl::p2p
