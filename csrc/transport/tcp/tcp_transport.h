// SPDX-License-Identifier: Apache-2.0

// Sockets between hosts.
//
// A link has one connection for the message channel, several for the collective channel, over which
// its stream is striped (stripes.h), and one that shows whether the peer is there (watch.h). The
// kernel's buffers are the link's buffers: the promised capacity is taken without any thread of
// this library. Keep-alive and TCP_USER_TIMEOUT detect a peer whose host vanishes.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/sides.h"
#include "csrc/transport/rma/over_links.h"
#include "csrc/transport/tcp/link_parts.h"
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
    using LinkKey = std::pair<GroupId, SocketPurpose::LinkNonce>;
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
        : waiter_(waiter), here_(std::move(here)), options_(options) {}
    [[nodiscard]] std::size_t block_for(const PeerAddress& peer) const;
    Result<std::vector<Introduction>> introductions(const LinkRequest& request,
                                                    std::size_t block) const;
    /// Builds the parts of a link; `sockets` are in the order of SocketPurpose::index.
    Result<LinkParts> make_parts(const CloseContext& close_context, std::vector<UniqueFd> sockets,
                                 std::size_t block) const;
    Status take_up(Arrival& arrival, LinkReceiver& receiver);
    std::map<LinkKey, Assembly>::iterator begin_or_find(const LinkRequest& request,
                                                        const SocketPurpose& purpose);
    Status finish(Assembly whole, LinkReceiver& receiver) const;

    Waiter& waiter_;
    const NetworkSide here_;
    const TcpOptions options_;
    const std::shared_ptr<RmaTransport> one_sided_ = std::make_shared<RmaOverLinks>();
    std::map<LinkKey, Assembly> assemblies_;
};

}  // namespace pccl::transport::tcp
