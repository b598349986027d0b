// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include <pccl/status.h>
#include "csrc/transport/control/introduction.h"

namespace pccl::transport {

/// Secrets of an accepting side, besides those of its groups.
struct OtherSecrets {
    /// Secret that onlookers prove (inquiry.h); without one they are strangers.
    std::optional<Secret> onlookers = {};
    Secret of_nobody{};  // replaces the secret of an unknown group
};

/// Interface to the process of a handshake. Called on the thread that accepts connections.
class HandshakeHost {
   public:
    virtual ~HandshakeHost() = default;
    /// Returns the secret of a group; nullopt for a group that this process is not in.
    virtual std::optional<Secret> secret_of(const GroupId& group) = 0;
    /// Returns whether request.destination is in this process, which has the secret of its group:
    /// several ranks may be, and come and go one by one. True unless overridden.
    virtual bool serves(const LinkRequest& /*request*/) { return true; }
    /// Reports a connection over `transport_name` ("tcp", "shm") that failed its handshake. The log
    /// of these must be bounded: strangers can cause any number. `why.process().host` is the peer's
    /// host, if determined.
    virtual void refused(std::string_view transport_name, const Status& why) = 0;
};

}  // namespace pccl::transport
