// SPDX-License-Identifier: Apache-2.0

// Choice of the ports of this process.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/verbs/hca_filter.h"
#include "csrc/transport/verbs/port.h"

namespace pccl::transport::verbs {

/// Limit of the ports of a process.
inline constexpr std::size_t kMostPortsUsed = 8;

struct PortWishes {
    HcaFilter filter;
    /// Whether emulated devices (rxe, siw) count.
    bool soft = false;
    int gid_index = -1;  // as of choose_gid()
    /// Interfaces at which the process listens.
    std::span<const sys::Interface> interfaces{};
};

/// Returns the active ports that fit, in the order of their names, with a GID each. All have one
/// link layer: that of the first. kUnavailable, with the reason for each port that does not fit,
/// where there is none. `waiter` outlives the ports.
[[nodiscard]] Result<std::vector<std::shared_ptr<Port>>> choose_ports(const PortWishes& wishes,
                                                                      Waiter& waiter);

}  // namespace pccl::transport::verbs
