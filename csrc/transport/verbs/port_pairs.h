// SPDX-License-Identifier: Apache-2.0

// Choice of the queue pairs of both ends of a link that are connected to each other.
//
// In networks of isolated rails, port 0 of a host reaches port 0 of another one, and no other port.
// Hosts may use different ports, so that the order alone does not show which belong together:
// their subnets do.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "csrc/sys/verbs/device_info.h"

namespace pccl::transport::verbs {

/// GID of a port, and how many of its leading bits are its subnet; 0: unknown.
struct SubnetGid {
    sys::verbs::RawGid gid{};
    int subnet_bits = 0;
};

/// Returns whether a GID is in a known subnet.
[[nodiscard]] bool shares_subnet(const sys::verbs::RawGid& gid, const SubnetGid& of);

/// Indices of two queue pairs.
struct LanePair {
    std::size_t here = 0;
    std::size_t peer = 0;

    bool operator==(const LanePair&) const = default;
};

/// Pairs queue pairs of this end, by their ports, with those of the peer, and returns the pairs in
/// the peer's order. Ports of one subnet come first, in their order. Ports that are in no common
/// subnet are paired by order where no other ports are in one either, since routers may connect
/// them, and where their subnet is unknown. Queue pairs without a partner are left out.
[[nodiscard]] std::vector<LanePair> pair_lanes(std::span<const SubnetGid> here,
                                               std::span<const sys::verbs::RawGid> peer);

}  // namespace pccl::transport::verbs
