// The two sides from which peers come to a process: its own host, and the network.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/sys/socket/address.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/control/control_plane.h"

namespace pccl::transport {

/// Where processes of the same host find this one.
struct HostSide {
    ControlAddress process;  // without doors
    sys::Address socket;     // of AF_UNIX
};

/// The addresses at which processes of other hosts have proven themselves: later connections to a
/// host go there without a trial. Safe from every thread.
class ProvenAddresses {
   public:
    void add(const std::string& host, const sys::Address& address);
    void remove(const std::string& host, const sys::Address& address);
    [[nodiscard]] bool has(const std::string& host, const sys::Address& address) const;

   private:
    mutable std::mutex mutex_;
    std::set<std::pair<std::string, std::string>> known_;  // hosts and IP addresses
};

/// One address at which this process listens for other hosts.
struct NetworkDoor {
    sys::Address socket;       // of an IP family
    sys::Interface interface;  // that has it
};

/// The addresses to try of one peer.
struct PeerRoutes {
    std::vector<sys::Address> addresses;  // the best first, at least one
    bool is_proven = false;               // the first one
};

/// Where processes of all hosts find this one.
struct PCCL_API NetworkSide {
    ControlAddress process{};          // without doors
    std::vector<NetworkDoor> doors{};  // the best first
    std::shared_ptr<ProvenAddresses> proven = std::make_shared<ProvenAddresses>();

    /// For peers.
    [[nodiscard]] std::vector<std::string> addresses() const;
    /// Returns those of `addresses`, at which the process at `peer` listens, that could be reached
    /// from here; unix sockets are passed over. Left out are loopbacks of other hosts, and, among
    /// several, addresses that this host has as well or has no route to. kUnavailable, with the
    /// reasons, when none is left, and once this host's own end is switched off.
    [[nodiscard]] Result<PeerRoutes> routes_to(const ControlAddress& peer,
                                               std::span<const std::string> addresses) const;
};

}  // namespace pccl::transport
