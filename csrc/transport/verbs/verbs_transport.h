// SPDX-License-Identifier: Apache-2.0

// RDMA between hosts, by libibverbs.
//
//     sender                                             receiver
//       | -- TCP: proof of the secret, purpose ----------> |  (control/handshake.h)
//       | -- TCP: queue pairs, credit page --------------> |
//       | <- TCP: queue pairs, rings, tail page ---------- |  its queue pairs are connected, or
//       |                                                  |  wait for rdma_cm (connector.h)
//       | == RDMA: bytes =================================> |
//       | <= RDMA: credit ================================= |
//
// The TCP connection stays open: it shows that the peer has left, and why. A receiver's answer may
// also be the reason why it takes no link. Queue pairs exist for used peers only.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "csrc/base/fork.h"
#include "csrc/base/ids.h"
#include "csrc/base/threads/poller.h"
#include "csrc/transport/control/routed_handshake.h"
#include "csrc/transport/control/sides.h"
#include "csrc/transport/transport.h"
#include "csrc/transport/verbs/gpu_way.h"
#include "csrc/transport/verbs/link_exchange.h"
#include "csrc/transport/verbs/port.h"

namespace pccl::transport::verbs {

struct VerbsOptions {
    std::string hca{};    // HcaFilter
    bool soft = false;    // emulated devices count
    int gid_index = -1;   // -1: chosen
    int queue_pairs = 1;  // of a link and port
    ConnectWay way = ConnectWay::kAuto;
    std::vector<GpuWay> gpu_ways{GpuWay::kDmaBuf, GpuWay::kPeermem};  // in their order
    /// Options of both ends: ControlOptions::stream must have them, too.
    sys::StreamOptions stream{};
    /// Interfaces of this host, which show the subnets of ports; empty: as the system lists them.
    std::vector<sys::Interface> networks{};
    /// A host without a sign of life for this long is lost.
    std::chrono::milliseconds peer_timeout{10'000};
};

class PCCL_API VerbsTransport final : public Transport {
   public:
    /// Creates the transport. `waiter` outlives it and its links; the process listens at `here`.
    /// kUnavailable, with the reasons, where no RDMA port is usable.
    static Result<std::unique_ptr<VerbsTransport>> create(Waiter& waiter, NetworkSide here,
                                                          const VerbsOptions& options);

    ~VerbsTransport() override;

    [[nodiscard]] TransportKind kind() const override { return TransportKind::kVerbs; }
    /// Returns the addresses of the control plane, and the link layer of the ports.
    [[nodiscard]] std::vector<std::string> addresses() const override;
    [[nodiscard]] Status reaches(const PeerAddress& peer) const override;
    Result<std::unique_ptr<PendingConnect>> connect(const PeerAddress& peer,
                                                    const LinkRequest& request,
                                                    const Secret& secret) override;
    void accept(Arrival arrival, LinkReceiver& receiver) override;
    void advance(LinkReceiver& receiver) override;
    [[nodiscard]] Result<std::shared_ptr<RmaTransport>> one_sided() override;

    [[nodiscard]] const std::vector<std::shared_ptr<Port>>& ports() const { return ports_; }

   private:
    class VerbsPendingConnect;
    struct IncomingLink;
    /// Authenticated connection whose sender has not described its end yet.
    struct Expected {
        Arrival from;
        Deadline deadline;
        LinkEndReader reader{};
        /// Link whose queue pairs are being connected.
        std::unique_ptr<IncomingLink> link{};

        [[nodiscard]] const LinkRequest& request() const { return from.introduction.request; }
    };

    VerbsTransport(Waiter& waiter, NetworkSide here, const VerbsOptions& options);
    [[nodiscard]] std::string link_layer() const;
    [[nodiscard]] Result<PeerRoutes> routes_to(const PeerAddress& peer) const;
    /// Returns true when the connection is accepted or refused.
    bool receive_end(Expected& expected, LinkReceiver& receiver);
    Result<bool> receive_link(Expected& expected, LinkReceiver& receiver);
    /// Makes this end of a link, and answers the sender.
    Result<std::unique_ptr<IncomingLink>> answer(const Expected& expected,
                                                 const LinkEnd& sender) const;
    Status hand_over(Expected& expected, LinkReceiver& receiver);
    /// Returns what this end wants: devices may leave no choice.
    [[nodiscard]] ConnectWay way() const;

    Waiter& waiter_;
    const NetworkSide here_;
    const VerbsOptions options_;
    std::vector<std::shared_ptr<Port>> ports_;
    std::list<Expected> expected_;
    std::shared_ptr<Poller> helper_;  // where links have several lanes
    std::mutex mutex_;
    std::shared_ptr<RmaTransport> one_sided_;  // created on first use; guarded by mutex_
};

/// Returns the bytes of each ring of a link in a group of so many ranks: 512 KiB
/// to 1 MiB.
[[nodiscard]] std::uint32_t ring_bytes(int group_size);

}  // namespace pccl::transport::verbs
