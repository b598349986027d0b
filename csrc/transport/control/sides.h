// SPDX-License-Identifier: Apache-2.0

// The two sides from which peers reach a process: its own host, and the network.
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/address.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/control/control_plane.h"

namespace pccl::transport {

/// Address of this process for processes of the same host.
struct HostSide {
    ControlAddress process;  // without doors
    sys::Address socket;     // of AF_UNIX
};

/// Addresses at which processes of other hosts have proven themselves: later connections to a host
/// use them without a trial. Thread-safe.
class ProvenAddresses {
   public:
    void add(const std::string& host, const sys::Address& address);
    void remove(const std::string& host, const sys::Address& address);
    [[nodiscard]] bool has(const std::string& host, const sys::Address& address) const;

   private:
    mutable std::mutex mutex_;
    std::set<std::pair<std::string, std::string>> known_;  // hosts and IP addresses
};

/// Address at which this process listens for other hosts.
struct NetworkDoor {
    sys::Address socket;       // an IP address
    sys::Interface interface;  // has that address
};

/// Addresses of one peer to try.
struct PeerRoutes {
    std::vector<sys::Address> addresses;  // the best first, at least one
    bool is_proven = false;               // whether the first one is proven
};

/// Addresses of this process for processes of all hosts.
struct PCCL_API NetworkSide {
    ControlAddress process{};          // without doors
    std::vector<NetworkDoor> doors{};  // the best first
    std::shared_ptr<ProvenAddresses> proven = std::make_shared<ProvenAddresses>();

    /// Returns whether a process is of this host, where loopbacks lead to it.
    [[nodiscard]] bool is_near(const ControlAddress& peer) const {
        return peer.host == process.host || (!peer.kernel.empty() && peer.kernel == process.kernel);
    }
    /// Returns the addresses for peers.
    [[nodiscard]] std::vector<std::string> addresses() const;
    /// Returns those of `addresses`, at which the process at `peer` listens, that could be reached
    /// from here; it skips unix sockets. It leaves out loopbacks of other hosts. Among several
    /// addresses it also leaves out those that this host has as well or has no route to.
    /// kUnavailable, with the reasons, when none is left, and once this host's own end is switched
    /// off.
    [[nodiscard]] Result<PeerRoutes> routes_to(const ControlAddress& peer,
                                               std::span<const std::string> addresses) const;
};

}  // namespace pccl::transport
