// A transport: one way of moving bytes between processes, one object of each kind in a process.
//
// A transport publishes an opaque address. Peers carry it through the rendezvous and hand it to
// dial() of their transport of the same kind; transports know neither the rendezvous nor the
// topology. Every connection proves the group's secret both ways (control/handshake.h) before
// anything else from it is parsed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "csrc/base/clock.h"
#include "csrc/transport/control/control_host.h"
#include "csrc/transport/link.h"

namespace pccl::transport {

/// Channels of every link.
inline constexpr ChannelId kCollectiveChannel = 0;
inline constexpr ChannelId kMessageChannel = 1;
inline constexpr int kChannels = 2;

class Region;

/// What rank 0 of a group asks for when it shares memory.
struct RegionRequest {
    GroupId group{};
    std::span<const std::string> addresses;    // of all ranks; its own is not used
    std::function<void(Rank)> waits_for = {};  // called before each rank that is waited for
};

/// What a transport tells its process about incoming connections. Called on the thread that runs
/// Transport::accept().
class Acceptor : public ControlHost {
   public:
    virtual void accepted(const LinkRequest& request, std::unique_ptr<RecvLink> link) = 0;
    /// Memory that request.source, rank 0 of the group, shares with all its ranks.
    /// Refused unless overridden.
    virtual void accepted_region(const LinkRequest& request, std::unique_ptr<Region> region);
    /// What request.destination answers a rank of the group that asks how it fares
    /// (control/inquiry.h); empty unless overridden. Must not wait for long.
    virtual std::string describe(const LinkRequest& request);
    /// A rank of the group tells why it has left, or what made it leave. Nothing unless overridden.
    virtual void noticed(const LinkRequest& request, const Status& reason);
    /// This process lacks what the request takes (descriptors, memory): kResourceExhausted. Must
    /// not wait. Refused unless overridden.
    virtual void fell_short(const LinkRequest& request, TransportKind kind, const Status& why);
};

/// A link that is being opened; dropped, it is given up. One thread at a time.
class Dial {
   public:
    virtual ~Dial() = default;
    /// The link, once; null until the peer has accepted it. Does not block: what there is to do
    /// next ends this process's sleeps (Waiter). kPeerLost carries the peer's rank.
    virtual Result<std::unique_ptr<SendLink>> advance() = 0;
    /// kTimeout that names the peer, and what it has not done: for those who wait no longer.
    [[nodiscard]] virtual Status late() const = 0;
};

class Transport {
   public:
    virtual ~Transport() = default;

    [[nodiscard]] virtual TransportKind kind() const = 0;
    /// For peers' dial(). At most 1 KiB.
    [[nodiscard]] virtual std::string address() const = 0;
    /// Whether a connection to `address` could work from here (shm: same host and namespaces). The
    /// reason when not goes to the log.
    [[nodiscard]] virtual Status reaches(const std::string& address) const = 0;
    /// Begins to open a link to the process at `address`. The far process accepts on its own
    /// background thread, so this never depends on what that process's user does.
    virtual Result<std::unique_ptr<Dial>> dial(const std::string& address,
                                               const LinkRequest& request,
                                               const Secret& secret) = 0;
    /// Makes a region (region.h) for a group, this process being its rank 0, and hands it to all
    /// ranks; their acceptors take it. Errors are those of a Dial; kUnsupported where no memory is
    /// shared.
    virtual Result<std::unique_ptr<Region>> share(const RegionRequest& request,
                                                  const Secret& secret, Deadline deadline);
    /// Asks the process at `address` how it fares in a group (Acceptor::describe). Errors are those
    /// of a Dial: kPeerLost where nobody is there or the group is not known, kTimeout where it
    /// is silent; kUnsupported unless overridden.
    virtual Result<std::string> inquire(const std::string& address, const LinkRequest& request,
                                        const Secret& secret, Deadline deadline);
    /// Tells the process at `address` why this rank has left the group (Acceptor::noticed).
    virtual Status tell(const std::string& address, const LinkRequest& request,
                        const Secret& secret, const Status& reason, Deadline deadline);
    /// Whether anybody listens at `address`, which proves nothing but that: kPeerLost where nobody
    /// does, ok where it cannot be known.
    virtual Status knock(const std::string& address, Deadline deadline);
    /// Readable when accept() has something to do; -1 where nothing needs accepting.
    [[nodiscard]] virtual int accept_fd() const = 0;
    /// Advances incoming connections without blocking: handshakes that are complete become
    /// RecvLinks.
    virtual void accept(Acceptor& acceptor) = 0;
};

}  // namespace pccl::transport
