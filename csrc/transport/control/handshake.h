// How two processes prove to each other that they belong to the same group, before a connection
// carries anything else. Used by control planes, and by transports that connect through sockets.
//
//     client                                              server
//       | -- magic, version, group, client nonce ----------> |
//       | <- magic, server nonce, HMAC(secret, server, nonces) |   the client verifies, or leaves
//       | -- request, HMAC(secret, client, nonces, request)> |   the server verifies, or refuses
//       | <- one byte: accepted, refused or put off -------- |
//
// A server that others crowd puts clients off: those of which nothing has come (by four bytes in
// place of its proof), else those that take long. They begin again with a connection of their own.
//
// Every message has a fixed size, and the request is read only once its proof holds. Nonces are
// fresh on both sides, so that a recorded exchange proves nothing. For a group that it does not
// know a server answers with a proof under a key of its own: nobody can ask which groups it is in.
// Over a unix socket, both ends must run as the same user, which either looks at first of all.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/socket/socket.h"
#include "csrc/transport/control/introduction.h"
#include "csrc/transport/control/socket_watcher.h"

namespace pccl::transport {

struct ConnectArgs {
    sys::Address address;
    Secret secret{};
    sys::StreamOptions stream = {};
    /// Of the error where somebody else has the address: without the secret, or no PCCL at all.
    StatusCode of_strangers = StatusCode::kPeerLost;
    /// Its errors are part of a longer one, which names the interface.
    bool is_one_of_several = false;
};

class ClientHandshake;

/// Opens one connection for each introduction, all at the same time. They belong together: the
/// first failure closes all. kPeerLost and kTimeout carry the rank of the request's destination.
/// kUnavailable where it runs as another user of this host.
class PCCL_API HandshakeClient {
   public:
    /// News on the sockets end the sleeps of `watcher`, which outlives this; null: nobody's.
    static Result<std::unique_ptr<HandshakeClient>> start(
        const ConnectArgs& args, std::span<const Introduction> introductions,
        SocketWatcher* watcher);
    ~HandshakeClient();
    HandshakeClient(const HandshakeClient&) = delete;
    HandshakeClient& operator=(const HandshakeClient&) = delete;

    /// True once all are accepted; does not block.
    Result<bool> advance();
    /// Returns when advance() may have something to do, after `longest` at the latest.
    void await_news(Duration longest) const;
    /// Whether the far kernel has taken all connections, which says nothing about its process.
    [[nodiscard]] bool is_connected() const;
    /// kTimeout, and what the peer has not done.
    [[nodiscard]] Status timeout_error() const;
    /// In the order of the introductions, once accepted.
    std::vector<UniqueFd> take_sockets();

   private:
    HandshakeClient(const ConnectArgs& args, SocketWatcher* watcher);
    void unwatch();
    Status begin_again(ClientHandshake& handshake);

    const ConnectArgs args_;
    SocketWatcher* const watcher_;
    std::vector<std::unique_ptr<ClientHandshake>> handshakes_;
};

/// The same from beginning to end, for callers that may wait; safe from every thread.
[[nodiscard]] PCCL_API Result<std::vector<UniqueFd>> connect_authenticated(
    const ConnectArgs& args, std::span<const Introduction> introductions, Deadline deadline);

/// What ControlPlane::probe() does.
[[nodiscard]] PCCL_API Status knock(const sys::Address& address, Deadline deadline);

}  // namespace pccl::transport
