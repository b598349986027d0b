// SPDX-License-Identifier: Apache-2.0

// Handshake by which two processes prove to each other that they belong to the same group, before a
// connection carries anything else. Control planes use it, and transports that connect through
// sockets.
//
//     client                                              server
//       | -- magic, version, group, client nonce ----------> |
//       | <- magic, server nonce, HMAC(secret, server, nonces) |   the client verifies, or leaves
//       | -- request, HMAC(secret, client, nonces, request)> |   the server verifies, or refuses
//       | <- one byte: accepted, refused or put off -------- |
//
// A crowded server puts clients off: first those that have sent nothing yet (by four bytes in place
// of its proof), then slow ones. Such a client begins again with a new connection.
//
// Every message has a fixed size, and the server parses the request only after its proof holds.
// Nonces are fresh on both sides, so that a recorded exchange proves nothing. For an unknown group
// a server answers with a proof under a key of its own: nobody can find out which groups it is in.
// Over a unix socket, both ends must run as the same user, which either checks first of all.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/address.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/introduction.h"
#include "csrc/transport/control/socket_watcher.h"

namespace pccl::transport {

struct ConnectArgs {
    sys::Address address;
    Secret secret{};
    sys::StreamOptions stream = {};
    /// IP address of this host to connect from; no address: the kernel's choice.
    sys::Address source = {};
    /// Interface of this host to connect through; empty: the one of the routes.
    std::string interface = {};
    /// Error code if another process has the address: one without the secret, or without PCCL.
    StatusCode of_strangers = StatusCode::kPeerLost;
    /// True if its errors become part of a longer one, which names the interface.
    bool is_one_of_several = false;
};

class ClientHandshake;

/// Client side: opens one connection for each introduction, all at the same time. They belong
/// together: the first failure closes all. kPeerLost and kTimeout carry the rank of the request's
/// destination. kUnavailable where the peer runs as another user of this host.
class PCCL_API HandshakeClient {
   public:
    /// Starts the handshakes. Events on the sockets end the sleeps of `watcher`, which outlives
    /// this.
    static Result<std::unique_ptr<HandshakeClient>> start(
        const ConnectArgs& args, std::span<const Introduction> introductions,
        SocketWatcher* watcher);
    ~HandshakeClient();
    HandshakeClient(const HandshakeClient&) = delete;
    HandshakeClient& operator=(const HandshakeClient&) = delete;

    /// Returns true once all are accepted; does not block.
    Result<bool> advance();
    /// Waits until advance() may have something to do, at most `longest`.
    void await_news(Duration longest) const;
    /// Returns whether the far kernel has accepted all connections, which proves nothing about its
    /// process.
    [[nodiscard]] bool is_connected() const;
    /// Returns a kTimeout that names the peer's missing step.
    [[nodiscard]] Status timeout_error() const;
    /// Returns the sockets in the order of the introductions, once accepted.
    std::vector<UniqueFd> take_sockets();

   private:
    HandshakeClient(const ConnectArgs& args, SocketWatcher* watcher);
    void unwatch();
    Status begin_again(ClientHandshake& handshake);

    const ConnectArgs args_;
    SocketWatcher* const watcher_;
    std::vector<std::unique_ptr<ClientHandshake>> handshakes_;
};

/// Runs the handshakes from beginning to end, for callers that may block; thread-safe.
[[nodiscard]] PCCL_API Result<std::vector<UniqueFd>> connect_authenticated(
    const ConnectArgs& args, std::span<const Introduction> introductions, Deadline deadline);

/// Implements ControlPlane::probe().
[[nodiscard]] PCCL_API Status knock(const sys::Address& address, Deadline deadline);

/// Hint for choosing another route.
inline constexpr std::string_view kHowToChoose =
    " (PCCL_SOCKET_IFNAME, on the peer and here, names the interface to use)";

/// Returns ", through eth0": the interface of this host through which packets to an IP address
/// leave, or that has the address itself; empty for other addresses, and where the kernel does not
/// report it.
[[nodiscard]] std::string outgoing_route(const sys::Address& to);

}  // namespace pccl::transport
