// SPDX-License-Identifier: Apache-2.0

// Choice of the address (GID) from which a port sends.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/verbs/device_info.h"

namespace pccl::transport::verbs {

struct GidChoice {
    sys::verbs::GidEntry entry;
    std::string reason;  // "RoCE v2, of 10.0.0.0/24"
};

/// What decides about the GID of each port of a process.
struct GidWishes {
    std::vector<sys::Interface> interfaces{};
    int index = -1;
    std::vector<sys::Interface> networks{};  // as of subnet_bits_of()
};

/// Chooses a GID of a port. On Ethernet: RoCE v2 before v1; then an address in the subnet of one of
/// `interfaces`, those at which this process listens; then their address family; then IPv4 before
/// global IPv6 before link-local addresses; then the lowest index. On InfiniBand: the first.
/// `index` >= 0 requires that entry. kUnavailable where the port has none.
[[nodiscard]] Result<GidChoice> choose_gid(const sys::verbs::PortInfo& port,
                                           std::span<const sys::Interface> interfaces, int index);

/// Returns how many leading bits of a port's GID are its subnet: 64 on InfiniBand; on Ethernet
/// those of the address among `networks`, the interfaces of this host, that the GID is. 0: it is
/// unknown, as for link-local addresses, which are alike in all networks.
[[nodiscard]] int subnet_bits_of(const sys::verbs::GidEntry& entry,
                                 std::span<const sys::Interface> networks);

}  // namespace pccl::transport::verbs
