// SPDX-License-Identifier: Apache-2.0

// Transport: one way of moving bytes between processes, one object of each kind in a process.
//
// A transport opens links to peers, and takes up connections that the process's control plane
// (control/control_plane.h) has accepted: there every connection proves the group's secret both
// ways before anything else from it is parsed. A transport publishes opaque addresses, which peers
// carry through the rendezvous and pass to connect() of their transport of the same kind.
// Transports depend neither on the rendezvous nor on the topology.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/ids.h"
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

/// Receiver of connections that peers make. Called on the thread that runs accept() and advance().
class LinkReceiver {
   public:
    virtual ~LinkReceiver() = default;
    virtual void accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) = 0;
    /// Takes memory that request.source, rank 0 of the group, shares with all its ranks. Refused
    /// unless overridden.
    virtual void accepted_region(const LinkRequest& request, std::unique_ptr<Region> region);
    /// Reports that this process lacks resources for the request (descriptors, memory):
    /// kResourceExhausted. Must not block. Refused unless overridden.
    virtual void fell_short(const LinkRequest& request, TransportKind kind, const Status& why);
    /// Reports a failed handshake, as HandshakeHost::refused() does.
    virtual void refused(std::string_view transport_name, const Status& why) = 0;
    /// Lets Transport::advance() be called when `fd` is readable; until unwatch(), or when `fd` is
    /// closed everywhere.
    virtual Status watch(int fd) = 0;
    virtual void unwatch(int fd) = 0;
};

/// Link that is being opened; its destructor gives the attempt up. One thread at a time.
class PendingConnect {
   public:
    virtual ~PendingConnect() = default;
    /// Returns the link, once; null until the peer has accepted it. Does not block: the next event
    /// of the attempt ends this process's sleeps (Waiter). kPeerLost carries the peer's rank.
    virtual Result<std::unique_ptr<SendLink>> advance() = 0;
    /// Returns a kTimeout that names the peer and its missing step, for a caller that stops
    /// waiting.
    [[nodiscard]] virtual Status timeout_error() const = 0;
};

/// Request of rank 0 of a group to share memory.
struct RegionRequest {
    GroupId group{};
    std::span<const PeerAddress> ranks;        // all ranks; the own entry is not used
    std::function<void(Rank)> waits_for = {};  // called before each rank that it waits for
    /// Callback with the error of a rank that cannot be connected to, before the others are
    /// notified that no memory will be shared; its result becomes the result of share().
    std::function<Status(const Status&)> unreached = {};
};

/// Memory that several processes share.
class RegionSharing {
   public:
    /// Makes a region (region.h) for a group whose rank 0 is this process, and passes it to all
    /// ranks, whose LinkReceivers take it. Errors are those of a PendingConnect.
    virtual Result<std::unique_ptr<Region>> share(const RegionRequest& request,
                                                  const Secret& secret, Deadline deadline) = 0;

   protected:
    ~RegionSharing() = default;
};

/// Transport interface. Several threads may call connect() at once; accept() and advance() take
/// one.
class Transport {
   public:
    virtual ~Transport() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    /// Returns the addresses for peers' connect(): one for each port, within the bounds of
    /// PeerAddress.
    [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;
    /// Returns whether a connection to `peer` could work from here (shm: same host and namespaces).
    /// The caller logs the reason if not.
    [[nodiscard]] virtual Status reaches(const PeerAddress& peer) const = 0;
    /// Begins to open a link. The far process accepts on its own background thread, independently
    /// of its user's calls.
    virtual Result<std::unique_ptr<PendingConnect>> connect(const PeerAddress& peer,
                                                            const LinkRequest& request,
                                                            const Secret& secret) = 0;
    /// Takes up a connection for a link, or for a region where there are regions(). Does not block:
    /// advance() completes an incomplete connection.
    virtual void accept(Arrival arrival, LinkReceiver& receiver) = 0;
    /// Makes progress on incomplete connections.
    virtual void advance(LinkReceiver& receiver) = 0;
    /// Returns null where no memory is shared.
    [[nodiscard]] virtual RegionSharing* regions() { return nullptr; }
    /// Returns one-sided access by links of this transport (rma.h), the same object each time; it
    /// may outlive the transport. kUnavailable where this machine lacks a requirement. Thread-safe.
    [[nodiscard]] virtual Result<std::shared_ptr<RmaTransport>> one_sided() = 0;
};

}  // namespace pccl::transport
