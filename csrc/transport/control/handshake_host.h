#pragma once

#include <optional>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/transport/control/introduction.h"

namespace pccl::transport {

/// Of an accepting side, besides those of its groups.
struct OtherSecrets {
    /// What onlookers prove (onlooker.h); without one they are strangers.
    std::optional<Secret> onlookers = {};
    Secret of_nobody{};  // stands in for the secret of unknown groups
};

/// What a handshake asks of its process. Called on the thread that accepts connections.
class HandshakeHost {
   public:
    virtual ~HandshakeHost() = default;
    /// nullopt for a group that this process is not in.
    virtual std::optional<Secret> secret_of(const GroupId& group) = 0;
    /// Whether request.destination is of this process, of whose group it has the secret: several
    /// ranks may be, and come and go one by one. True unless overridden.
    virtual bool serves(const LinkRequest& /*request*/) { return true; }
    /// A connection over `transport_name` ("tcp", "shm") that failed its handshake, to be logged in
    /// bounds: strangers can cause as many as they like. `why.process().host` tells who it was,
    /// where that is known.
    virtual void refused(std::string_view transport_name, const Status& why) = 0;
};

}  // namespace pccl::transport
