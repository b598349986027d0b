// Sockets between hosts.
//
// A link is one connection for the message channel, several for the collective channel, over which
// its stream is striped (stripes.h), and one that shows whether the peer is there (watch.h). The
// kernel's buffers are the link's buffers: nothing of ours must run for the promised capacity to be
// taken. Peers whose host vanishes are noticed by keep-alive and TCP_USER_TIMEOUT.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/control/handshake_server.h"
#include "csrc/transport/tcp/watch.h"
#include "csrc/transport/tcp/wire.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::tcp {

struct TcpOptions {
    /// Which interface to listen at, in the syntax of PCCL_SOCKET_IFNAME (sys/socket/interfaces.h).
    std::string interface = {};
    /// Of the collective channel of links that this side connects; 1 to 16.
    int data_sockets = 2;
    std::size_t block_bytes = 128 * kKiB;
    sys::StreamOptions stream{.buffer_bytes = 1 * kMiB, .give_up = {}};
    /// After so long without a sign of life a host is lost.
    std::chrono::milliseconds peer_timeout{10'000};
};

/// dial() may be called from several threads at once; accept() from one.
class PCCL_API TcpTransport final : public Transport {
   public:
    /// `waiter` outlives the transport and its links. kUnavailable when no interface fits.
    static Result<std::unique_ptr<TcpTransport>> create(Waiter& waiter, const TcpOptions& options);

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }
    [[nodiscard]] std::string address() const override { return own_.to_string(); }
    [[nodiscard]] Status reaches(const std::string& address) const override;
    Result<std::unique_ptr<Dial>> dial(const std::string& address, const LinkRequest& request,
                                       const Secret& secret) override;
    Result<std::string> inquire(const std::string& address, const LinkRequest& request,
                                const Secret& secret, Deadline deadline) override;
    Status tell(const std::string& address, const LinkRequest& request, const Secret& secret,
                const Status& reason, Deadline deadline) override;
    Status knock(const std::string& address, Deadline deadline) override;
    [[nodiscard]] int accept_fd() const override { return server_->poll_fd(); }
    void accept(Acceptor& acceptor) override;

   private:
    class TcpDial;
    using LinkKey = std::pair<GroupId, SocketPurpose::LinkNonce>;
    /// A link of which some sockets are still missing.
    struct Assembly {
        LinkRequest request;
        SocketPurpose purpose;
        Deadline deadline;
        std::vector<UniqueFd> sockets;  // by SocketPurpose::index
        std::size_t missing = 0;

        [[nodiscard]] bool is_given_up() const;
    };

    TcpTransport(Waiter& waiter, TcpOptions options)
        : waiter_(waiter), options_(std::move(options)) {}
    Status start();
    /// kUnavailable once this host's own end is switched off.
    [[nodiscard]] Status look_at_interface() const;
    Result<std::vector<Introduction>> introductions(const LinkRequest& request) const;
    [[nodiscard]] Result<DialArgs> dial_args(const std::string& address,
                                             const Secret& secret) const;
    /// `sockets` in the order of SocketPurpose::index.
    Result<LinkParts> make_parts(const Departure& departure, std::vector<UniqueFd> sockets,
                                 std::size_t block) const;
    Status arrived(UniqueFd socket, const Introduction& introduction, Acceptor& acceptor);
    void give_up_incomplete(Acceptor& acceptor);

    Waiter& waiter_;
    const TcpOptions options_;
    PublishedAddress own_;
    sys::Interface interface_;  // that the server listens at
    std::unique_ptr<HandshakeServer> server_;
    std::map<LinkKey, Assembly> assemblies_;
};

}  // namespace pccl::transport::tcp
