// SPDX-License-Identifier: Apache-2.0

// Connections of one link to a peer with several addresses: determines the peer's address, unless
// one is proven, and opens all sockets of the link there.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "csrc/transport/control/address_trial.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/sides.h"

namespace pccl::transport {

/// Attempt in progress. One thread at a time.
class RoutedHandshake {
   public:
    struct Target {
        std::string host;  // ControlAddress::host of the peer
        PeerRoutes routes;
        LinkRequest request;
        Secret secret{};
        sys::StreamOptions stream{};
        /// One introduction for each socket.
        std::vector<Introduction> introductions;
    };
    /// Starts the attempt. Events on the sockets end the sleeps of `watcher`, which outlives this;
    /// a found address is added to `proven`.
    static Result<std::unique_ptr<RoutedHandshake>> start(Target target,
                                                          std::shared_ptr<ProvenAddresses> proven,
                                                          SocketWatcher& watcher);

    /// Returns true once the peer has accepted all sockets; does not block. Errors are those of
    /// HandshakeClient and AddressTrial.
    Result<bool> advance();
    /// Returns the sockets in the order of the introductions, once accepted.
    std::vector<UniqueFd> take_sockets() { return client_->take_sockets(); }
    /// Returns a kTimeout that names the peer's missing step.
    [[nodiscard]] Status timeout_error() const;

   private:
    RoutedHandshake(Target target, std::shared_ptr<ProvenAddresses> proven, SocketWatcher& watcher)
        : target_(std::move(target)), proven_(std::move(proven)), watcher_(watcher) {}
    void find_address();
    Status connect_at(const sys::Address& address);
    /// Returns whether the peer may have another address: one that another process of its host has
    /// proven may belong to a different host now.
    [[nodiscard]] bool may_be_elsewhere(const Status& failure) const;

    const Target target_;
    const std::shared_ptr<ProvenAddresses> proven_;
    SocketWatcher& watcher_;
    std::unique_ptr<AddressTrial> trial_;      // set if a trial was necessary
    std::unique_ptr<HandshakeClient> client_;  // set once the address is determined
};

}  // namespace pccl::transport
