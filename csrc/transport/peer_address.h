// SPDX-License-Identifier: Apache-2.0

// Address of a process: the addresses of its control plane and of all its transports.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "csrc/base/bytes.h"
#include "csrc/sys/socket/address.h"
#include "csrc/transport/control/control_plane.h"
#include "csrc/transport/transport_flags.h"

namespace pccl::transport {

/// Plain value that peers carry through the rendezvous. Its bytes stay below 5 KiB.
struct PCCL_API PeerAddress {
    static constexpr std::size_t kMostAddresses = 16;  // of all transports, and of control sockets
    static constexpr std::size_t kLongestAddress = 128;
    static constexpr std::size_t kLongestHost = 256;

    ControlAddress control;
    /// Transport::addresses() of each usable transport; at least one each.
    std::map<TransportKind, std::vector<std::string>> links;

    bool operator==(const PeerAddress&) const = default;
    /// Returns the first address of a kind; kUnavailable where the process has no such transport.
    [[nodiscard]] Result<std::string> first_of(TransportKind kind) const;
    /// Moves addresses at one of `sources` before the others of their kind: peers try them first.
    void prefer(std::span<const sys::Address> sources);
    /// Serialises the address. The caller keeps the bounds above.
    void write(ByteWriter& out) const;
    /// Parses bytes of any origin. kInvalidArgument names the place.
    static Result<PeerAddress> read(ByteReader& in);
};

}  // namespace pccl::transport
