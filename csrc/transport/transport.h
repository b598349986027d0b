// A transport: one way of moving bytes between processes, one object of each kind in a process.
//
// It opens links to peers, and takes up those that the process's control plane
// (control/control_plane.h) lets in: there every connection proves the group's secret both ways
// before anything else from it is parsed. A transport publishes opaque addresses, which peers carry
// through the rendezvous and hand to connect() of their transport of the same kind; transports know
// neither the rendezvous nor the topology.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/link.h"
#include "csrc/transport/peer_address.h"

namespace pccl::transport {

/// Channels of every link.
inline constexpr ChannelId kCollectiveChannel = 0;
inline constexpr ChannelId kMessageChannel = 1;
inline constexpr int kChannels = 2;

class Region;
class RmaTransport;

/// What becomes of connections that peers make. Called on the thread that runs accept() and
/// advance().
class LinkReceiver {
   public:
    virtual ~LinkReceiver() = default;
    virtual void accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) = 0;
    /// Memory that request.source, rank 0 of the group, shares with all its ranks.
    /// Refused unless overridden.
    virtual void accepted_region(const LinkRequest& request, std::unique_ptr<Region> region);
    /// This process lacks what the request takes (descriptors, memory): kResourceExhausted. Must
    /// not wait. Refused unless overridden.
    virtual void fell_short(const LinkRequest& request, TransportKind kind, const Status& why);
    /// As HandshakeHost::refused().
    virtual void refused(std::string_view transport_name, const Status& why) = 0;
    /// Lets Transport::advance() be called when `fd` is readable; until unwatch(), or when `fd` is
    /// closed everywhere.
    virtual Status watch(int fd) = 0;
    virtual void unwatch(int fd) = 0;
};

/// A link that is being opened; dropped, it is given up. One thread at a time.
class PendingConnect {
   public:
    virtual ~PendingConnect() = default;
    /// The link, once; null until the peer has accepted it. Does not block: what there is to do
    /// next ends this process's sleeps (Waiter). kPeerLost carries the peer's rank.
    virtual Result<std::unique_ptr<SendLink>> advance() = 0;
    /// kTimeout that names the peer, and what it has not done: for those who wait no longer.
    [[nodiscard]] virtual Status timeout_error() const = 0;
};

/// What rank 0 of a group asks for when it shares memory.
struct RegionRequest {
    GroupId group{};
    std::span<const PeerAddress> ranks;        // all of them; its own is not used
    std::function<void(Rank)> waits_for = {};  // called before each rank that is waited for
    /// Called with the error of a rank that cannot be connected to, before the others hear that no
    /// memory will be shared; returns what share() returns.
    std::function<Status(const Status&)> unreached = {};
};

/// Memory that several processes have in common.
class RegionSharing {
   public:
    /// Makes a region (region.h) for a group, this process being its rank 0, and hands it to all
    /// ranks, whose LinkReceivers take it. Errors are those of a PendingConnect.
    virtual Result<std::unique_ptr<Region>> share(const RegionRequest& request,
                                                  const Secret& secret, Deadline deadline) = 0;

   protected:
    ~RegionSharing() = default;
};

/// connect() may be called from several threads at once; accept() and advance() take one.
class Transport {
   public:
    virtual ~Transport() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    /// For peers' connect(): one for each port. Within the bounds of PeerAddress.
    [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;
    /// Whether a connection to `peer` could work from here (shm: same host and namespaces). The
    /// reason when not goes to the log.
    [[nodiscard]] virtual Status reaches(const PeerAddress& peer) const = 0;
    /// Begins to open a link. The far process accepts on its own background thread, so this never
    /// depends on what that process's user does.
    virtual Result<std::unique_ptr<PendingConnect>> connect(const PeerAddress& peer,
                                                            const LinkRequest& request,
                                                            const Secret& secret) = 0;
    /// Takes up a connection for a link, or for a region where there are regions(). Does not block:
    /// what is not whole yet becomes so in advance().
    virtual void accept(Arrival arrival, LinkReceiver& receiver) = 0;
    /// Goes on with connections that are half made.
    virtual void advance(LinkReceiver& receiver) = 0;
    /// Null where no memory is shared.
    [[nodiscard]] virtual RegionSharing* regions() { return nullptr; }
    /// One-sided access by links of this transport (rma.h), the same object each time; it may
    /// outlive the transport. kUnavailable where this machine lacks what it takes. From any thread.
    [[nodiscard]] virtual Result<std::shared_ptr<RmaTransport>> one_sided() = 0;
};

}  // namespace pccl::transport
