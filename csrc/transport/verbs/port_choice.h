// SPDX-License-Identifier: Apache-2.0

// Choice of the ports of this process.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/verbs/gid_choice.h"
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
    /// All interfaces of this host: they show the subnets of ports.
    std::span<const sys::Interface> networks{};
};

/// Port of this machine, and whether it is used.
struct JudgedPort {
    std::string device;
    sys::verbs::PortInfo info;
    Status port;       // else why the port is not used
    Status gid;        // of a port that is used otherwise: why none of its GIDs is
    GidChoice chosen;  // where both are ok

    [[nodiscard]] bool is_usable() const { return port.is_ok() && gid.is_ok(); }
    [[nodiscard]] const Status& refusal() const { return port.is_ok() ? gid : port; }
    /// Returns "mlx5_0:1".
    [[nodiscard]] std::string name() const { return device + ":" + std::to_string(info.number); }
};

/// Judges all ports of `devices`, in the order of their names. The usable ones have one link layer,
/// that of the first, and are kMostPortsUsed at most.
[[nodiscard]] std::vector<JudgedPort> judge_ports(const PortWishes& wishes,
                                                  std::vector<sys::verbs::DeviceInfo> devices);

/// Judges ports by this process's settings and network interfaces. kInvalidArgument for a setting
/// that cannot be read; kUnavailable where the process listens at no interface.
[[nodiscard]] Result<std::vector<JudgedPort>> judge_ports_of_process(
    std::vector<sys::verbs::DeviceInfo> devices);

/// Returns the active ports that fit, in the order of their names, with a GID each. All have one
/// link layer: that of the first. kUnavailable, with the reason for each port that does not fit,
/// where there is none. `waiter` outlives the ports.
[[nodiscard]] Result<std::vector<std::shared_ptr<Port>>> choose_ports(const PortWishes& wishes,
                                                                      Waiter& waiter);

}  // namespace pccl::transport::verbs
