// SPDX-License-Identifier: Apache-2.0

// Sockets between hosts.
//
// A link has one connection for the message channel, several for the collective channel, over which
// its stream is striped (stripes.h), and one that shows whether the peer is there (watch.h). The
// kernel's buffers are the link's buffers: the promised capacity is taken without any thread of
// this library. Keep-alive and TCP_USER_TIMEOUT detect a peer whose host vanishes.
//
// Between hosts with several interfaces each, a link has such sockets on each of its paths
// (send_paths.h, recv_paths.h).
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/ids.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/routed_handshake.h"
#include "csrc/transport/control/sides.h"
#include "csrc/transport/rma/over_links.h"
#include "csrc/transport/tcp/link_parts.h"
#include "csrc/transport/tcp/path_keeper.h"
#include "csrc/transport/tcp/path_route.h"
#include "csrc/transport/tcp/recv_paths.h"
#include "csrc/transport/tcp/wire.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::tcp {

struct TcpOptions {
    /// Sockets of the collective channel of links that this side connects; 1 to 16.
    int data_sockets = 2;
    /// Bytes of the stream for one socket at a time: a switch costs some 3 us of both ends. Short
    /// blocks let paths of different speeds share the work.
    std::size_t block_bytes = 256 * kKiB;
    /// Block size within a host, where all sockets have one path: more than a buffer holds, because
    /// one long call of the kernel takes less time than several short ones
    /// (docs/internals/gotchas.md).
    std::size_t near_block_bytes = 4 * kMiB - kCacheLine;
    /// Options of both ends: ControlOptions::stream must have them, too.
    sys::StreamOptions stream{.buffer_bytes = 1 * kMiB, .give_up = {}};
    /// Whether PCCL_SOCKET_IFNAME chose the interfaces: links then use bridges, too.
    bool has_named_interfaces = false;
    /// Paths of a link within a host, all over one address.
    std::size_t near_paths = 1;
    /// A host without a sign of life for this long is lost.
    std::chrono::milliseconds peer_timeout{10'000};
};

class PCCL_API TcpTransport final : public Transport {
   public:
    /// Creates the transport. `waiter` outlives it and its links; the process listens at `here`.
    static Result<std::unique_ptr<TcpTransport>> create(Waiter& waiter, NetworkSide here,
                                                        const TcpOptions& options);

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kTcp; }
    [[nodiscard]] std::vector<std::string> addresses() const override { return here_.addresses(); }
    [[nodiscard]] Status reaches(const PeerAddress& peer) const override;
    Result<std::unique_ptr<PendingConnect>> connect(const PeerAddress& peer,
                                                    const LinkRequest& request,
                                                    const Secret& secret) override;
    void accept(Arrival arrival, LinkReceiver& receiver) override;
    void advance(LinkReceiver& receiver) override;
    /// Returns one-sided access by copies of the far link (rma/over_links.h).
    [[nodiscard]] Result<std::shared_ptr<RmaTransport>> one_sided() override { return one_sided_; }

   private:
    class TcpPendingConnect;
    class MultipathPendingConnect;
    using LinkKey = std::pair<GroupId, SocketPurpose::LinkNonce>;
    /// Link, path and attempt.
    using AssemblyKey = std::tuple<LinkKey, std::uint32_t, std::uint32_t>;
    /// Link of which some sockets are still missing.
    struct Assembly {
        LinkRequest request;
        SocketPurpose purpose;
        Deadline deadline;
        std::vector<UniqueFd> sockets;  // by SocketPurpose::index
        std::size_t missing = 0;

        [[nodiscard]] bool is_given_up() const;
    };

    TcpTransport(Waiter& waiter, NetworkSide here, const TcpOptions& options)
        : waiter_(waiter),
          here_(std::move(here)),
          options_(options),
          keeper_(new PathKeeper, LeaveToParent()) {}
    /// Returns the paths of a link to a peer; fewer than two: it has the one of its sockets.
    [[nodiscard]] std::vector<PathRoute> paths_to(const PeerAddress& peer, const PeerRoutes& routes,
                                                  Rank rank) const;
    Result<std::unique_ptr<PendingConnect>> connect_paths(RoutedHandshake::Target target,
                                                          std::vector<PathRoute> routes);
    /// Watches the sockets of a link, of which the last one shows whether the peer is there.
    Result<std::vector<WatchedSocket>> watched(std::vector<UniqueFd> sockets) const;
    [[nodiscard]] std::size_t block_for(const PeerAddress& peer) const;
    Result<std::vector<Introduction>> introductions(const LinkRequest& request,
                                                    std::size_t block) const;
    /// Builds the parts of a link; `sockets` are in the order of SocketPurpose::index.
    Result<LinkParts> make_parts(const CloseContext& close_context, std::vector<UniqueFd> sockets,
                                 std::size_t block) const;
    Status take_up(Arrival& arrival, LinkReceiver& receiver);
    std::map<AssemblyKey, Assembly>::iterator begin_or_find(const LinkRequest& request,
                                                            const SocketPurpose& purpose);
    Status finish(Assembly whole, LinkReceiver& receiver);
    Status finish_path(Assembly whole, const CloseContext& close_context, LinkReceiver& receiver);

    Waiter& waiter_;
    const NetworkSide here_;
    const TcpOptions options_;
    const std::shared_ptr<RmaTransport> one_sided_ = std::make_shared<RmaOverLinks>();
    std::map<AssemblyKey, Assembly> assemblies_;
    std::map<LinkKey, std::weak_ptr<RecvPaths>> multipath_;  // links that have begun
    const std::shared_ptr<PathLog> path_log_ = std::make_shared<PathLog>();
    const std::shared_ptr<PathKeeper> keeper_;
};

}  // namespace pccl::transport::tcp
