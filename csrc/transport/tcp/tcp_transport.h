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

#include "csrc/transport/control/handshake.h"
#include "csrc/transport/control/sides.h"
#include "csrc/transport/rma/over_links.h"
#include "csrc/transport/tcp/watch.h"
#include "csrc/transport/tcp/wire.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::tcp {

struct TcpOptions {
    /// Of the collective channel of links that this side connects; 1 to 16.
    int data_sockets = 2;
    /// Of the stream, that go over one socket: choosing another takes some 3 us of both ends.
    /// Short ones let paths of different speeds share the work.
    std::size_t block_bytes = 256 * kKiB;
    /// Within a host, where all sockets have one path: more than a buffer holds, for one long call
    /// of the kernel takes less than several short ones (docs/gotchas.md).
    std::size_t near_block_bytes = 4 * kMiB - kCacheLine;
    /// Wanted on both ends: of ControlOptions::stream, too.
    sys::StreamOptions stream{.buffer_bytes = 1 * kMiB, .give_up = {}};
    /// After so long without a sign of life a host is lost.
    std::chrono::milliseconds peer_timeout{10'000};
};

class PCCL_API TcpTransport final : public Transport {
   public:
    /// `waiter` outlives the transport and its links; the process listens at `here`.
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
    /// By the far link's own copies (rma/over_links.h).
    [[nodiscard]] Result<std::shared_ptr<RmaTransport>> one_sided() override { return one_sided_; }

   private:
    class TcpPendingConnect;
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

    TcpTransport(Waiter& waiter, NetworkSide here, const TcpOptions& options)
        : waiter_(waiter), here_(std::move(here)), options_(options) {}
    [[nodiscard]] std::size_t block_for(const PeerAddress& peer) const;
    Result<std::vector<Introduction>> introductions(const LinkRequest& request,
                                                    std::size_t block) const;
    Result<std::unique_ptr<HandshakeClient>> start_handshake(const sys::Address& address,
                                                             const LinkRequest& request,
                                                             const Secret& secret,
                                                             std::size_t block) const;
    /// `sockets` in the order of SocketPurpose::index.
    Result<LinkParts> make_parts(const CloseContext& close_context, std::vector<UniqueFd> sockets,
                                 std::size_t block) const;
    Status take_up(Arrival arrival, LinkReceiver& receiver);
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
