// SPDX-License-Identifier: Apache-2.0

// The one device of the plug-in: all network interfaces that the job may use.
//
// NCCL opens communicators per device, and each of them then has one NIC. Here each communicator
// has all of them, because pieces of a message balance over unequal NICs and messages do not.
#pragma once

#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/sys/socket/interfaces.h"
#include "csrc/transport/tcp/path_choice.h"

namespace pccl::nccl {

struct NetworkDevice {
    std::string name{};      // "eth0+eth1"
    std::string pci_path{};  // of the first interface, in /sys; empty: it has none
    int megabits = 0;        // of all interfaces
    std::vector<sys::Interface> interfaces{};  // with one address each, at most kMostPaths
};

/// Returns the device of these interfaces. `spec` is that of PCCL_SOCKET_IFNAME. Without one,
/// bridges and other devices without a wire are left out where there are others.
[[nodiscard]] Result<NetworkDevice> make_network_device(std::vector<sys::Interface> interfaces,
                                                        const std::string& spec);

using transport::tcp::PathChoice;

/// Returns the paths to a peer with these addresses.
[[nodiscard]] inline std::vector<PathChoice> choose_paths(
    const NetworkDevice& device, const std::vector<sys::Address>& addresses) {
    return transport::tcp::choose_paths(device.interfaces, addresses);
}

}  // namespace pccl::nccl
