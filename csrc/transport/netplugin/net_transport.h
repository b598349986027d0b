// SPDX-License-Identifier: Apache-2.0

// Links over a net plug-in of NCCL's ABI.
//
//     sender                                             receiver
//       | -- TCP: proof of the secret -------------------> |  (control/handshake.h)
//       | <- TCP: a handle for each channel -------------- |  listen
//       | == plug-in: connect =========================== |  accept
//       | == plug-in: messages ==========================> |
//
// The TCP connection stays open: it shows that the peer has left, and why. Communicators of a
// plug-in have one direction, as links do.
#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "csrc/base/ids.h"
#include "csrc/sys/net_plugin/plugin.h"
#include "csrc/transport/control/routed_handshake.h"
#include "csrc/transport/control/sides.h"
#include "csrc/transport/netplugin/link_core.h"
#include "csrc/transport/netplugin/progress.h"
#include "csrc/transport/netplugin/setup.h"
#include "csrc/transport/netplugin/wire.h"
#include "csrc/transport/rma/over_links.h"
#include "csrc/transport/transport.h"

namespace pccl::transport::netplugin {

struct NetOptions {
    /// Name or path of the plug-in, as in PCCL_NET_PLUGIN.
    std::string plugin;
    /// Options of both ends: ControlOptions::stream must have them, too.
    sys::StreamOptions stream{};
    /// A host without a sign of life, and a call of the plug-in that does not return, for this long
    /// are lost.
    std::chrono::milliseconds peer_timeout{10'000};
};

class PCCL_API NetTransport final : public Transport {
   public:
    /// Creates the transport, whose links keep `waiter`; the process listens at `here`.
    /// kUnavailable, with one line, where the plug-in cannot be used.
    static Result<std::unique_ptr<NetTransport>> create(std::shared_ptr<Waiter> waiter,
                                                        NetworkSide here,
                                                        const NetOptions& options);
    ~NetTransport() override;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kNetPlugin; }
    /// Returns the addresses of the control plane, and the name of the plug-in.
    [[nodiscard]] std::vector<std::string> addresses() const override;
    [[nodiscard]] Status reaches(const PeerAddress& peer) const override;
    Result<std::unique_ptr<PendingConnect>> connect(const PeerAddress& peer,
                                                    const LinkRequest& request,
                                                    const Secret& secret) override;
    void accept(Arrival arrival, LinkReceiver& receiver) override;
    void advance(LinkReceiver& receiver) override;
    /// Returns one-sided access by copies of the far link (rma/over_links.h).
    [[nodiscard]] Result<std::shared_ptr<RmaTransport>> one_sided() override { return one_sided_; }

    [[nodiscard]] const sys::net_plugin::Plugin& plugin() const { return plugin_; }

   private:
    class NetPendingConnect;
    /// Authenticated connection whose link is being set up.
    struct Expected {
        Arrival from;
        Deadline deadline;
        std::shared_ptr<UniqueFd> bell;  // eventfd, which the polling thread rings
        std::shared_ptr<AcceptSetup> setup{};
        std::optional<CloseReasonReceiver> closing{};  // the sender sends nothing else
        bool has_offered = false;

        [[nodiscard]] const LinkRequest& request() const { return from.introduction.request; }
    };

    NetTransport(std::shared_ptr<Waiter> waiter, NetworkSide here, const NetOptions& options,
                 Plugin& plugin);
    [[nodiscard]] std::string plugin_address() const;
    [[nodiscard]] Result<PeerRoutes> routes_to(const PeerAddress& peer) const;
    using Device = sys::net_plugin::DeviceProperties;
    using Devices = std::vector<const Device*>;
    /// Returns the receiver's devices of a link, at most `most`: links begin with others in turn.
    [[nodiscard]] Devices devices_for(const LinkRequest& request, std::size_t most) const;
    /// Returns the sender's: each of the receiver's rail, or of the same place in the list.
    [[nodiscard]] Devices devices_for(const LinkRequest& request,
                                      const std::vector<LaneOffer>& lanes) const;
    [[nodiscard]] CommSizes sizes_for(const LinkRequest& request, const Devices& devices) const;
    [[nodiscard]] SetupPlace place_for(const LinkRequest& request, Rank peer,
                                       Devices devices) const;
    Result<LinkParts> make_parts(const CloseContext& close_context, Caller caller,
                                 UniqueFd socket) const;
    Status begin(Expected& expected, LinkReceiver& receiver) const;
    /// Returns true when the connection is accepted or refused.
    bool advance_one(Expected& expected, LinkReceiver& receiver) const;
    Result<bool> receive_link(Expected& expected, LinkReceiver& receiver) const;
    Status hand_over(Expected& expected, LinkReceiver& receiver) const;
    void refuse(Expected& expected, const Status& why, LinkReceiver& receiver) const;
    void unwatch(const Expected& expected, LinkReceiver& receiver) const;

    const std::shared_ptr<Waiter> waiter_;
    const NetworkSide here_;
    const NetOptions options_;
    Plugin& plugin_;
    const std::shared_ptr<Progress> progress_;
    const std::shared_ptr<RmaTransport> one_sided_ = std::make_shared<RmaOverLinks>();
    std::list<Expected> expected_;
};

}  // namespace pccl::transport::netplugin
