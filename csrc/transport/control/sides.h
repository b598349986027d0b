// The two sides from which peers come to a process: its own host, and the network.
#pragma once

#include <string>

#include "csrc/base/status.h"
#include "csrc/sys/socket/address.h"
#include "csrc/sys/socket/interfaces.h"

namespace pccl::transport {

/// Where processes of the same host find this one.
struct HostSide {
    std::string host;     // sys::host_identity()
    sys::Address socket;  // of AF_UNIX
};

/// Where processes of all hosts find this one.
struct PCCL_API NetworkSide {
    std::string host;
    sys::Address socket;       // of an IP family
    sys::Interface interface;  // that has it

    /// Whether `address`, of a process of `peer_host`, could be reached from here: kUnavailable for
    /// the loopback of another host, and once this host's own end is switched off.
    [[nodiscard]] Status reaches(const std::string& peer_host, const sys::Address& address) const;
    /// The same address for use on this host: link-local ones need the scope of our interface.
    [[nodiscard]] sys::Address from_here(const sys::Address& address) const;
};

}  // namespace pccl::transport
