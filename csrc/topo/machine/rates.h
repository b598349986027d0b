// SPDX-License-Identifier: Apache-2.0

// Bandwidths of links, GB/s (10^9 bytes per second) in one direction. They are NCCL's values, so
// that plans are comparable with NCCL's: the result of a benchmark of the link, not its data sheet.
#pragma once

#include <optional>
#include <string_view>

#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

inline constexpr double kLocalRate = 5000;
/// PCIe lanes, if their number is unknown.
inline constexpr int kUsualPcieLanes = 16;

/// Returns the rate of one NVLink of a GPU of compute capability sm / 10.
[[nodiscard]] PCCL_API double nvlink_rate(int sm);
/// Returns the rate of one lane: "16.0 GT/s PCIe"; nullopt if the text names no generation of PCIe.
[[nodiscard]] PCCL_API std::optional<double> pcie_lane_rate(std::string_view link_speed);
/// Returns the rate of a device's link. An unknown generation counts as the third, and an unknown
/// number of lanes as 16.
[[nodiscard]] PCCL_API double pci_rate(const PciDevice& device);
/// Returns the rate between this CPU and another socket or NUMA node.
[[nodiscard]] PCCL_API double socket_rate(const Cpu& cpu);
/// Returns the rate of a NIC's port; 10 Gb/s if its speed is unknown.
[[nodiscard]] PCCL_API double net_rate(const Net& net);
[[nodiscard]] PCCL_API double c2c_rate(const C2c& c2c);
/// Returns the maximum rate of one channel: about the throughput of a thread block.
[[nodiscard]] PCCL_API double channel_rate(int sm);

/// Returns the usual PCIe generation of such a GPU.
[[nodiscard]] PCCL_API std::string_view usual_link_speed(int sm);

}  // namespace pccl::topo
