// Bandwidths of links, GB/s (10^9 bytes a second) in one direction: the values that NCCL assumes,
// so that plans compare with its own. What a benchmark of the link reaches, not what its data sheet
// says.
#pragma once

#include <optional>
#include <string_view>

#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

inline constexpr double kLocalRate = 5000;
/// Of PCIe, where nothing says how many there are.
inline constexpr int kUsualLanes = 16;

/// Of one NVLink of a GPU of compute capability sm / 10.
[[nodiscard]] PCCL_API double nvlink_rate(int sm);
/// Of one lane: "16.0 GT/s PCIe"; nullopt for what names no generation of PCIe.
[[nodiscard]] PCCL_API std::optional<double> lane_rate(std::string_view link_speed);
/// Lanes of an unknown generation count as those of the third, and no lanes as 16.
[[nodiscard]] PCCL_API double pci_rate(const PciDevice& device);
/// Between this CPU and another socket's, or NUMA node's.
[[nodiscard]] PCCL_API double socket_rate(const Cpu& cpu);
/// Of a NIC's port; 10 Gb/s where its speed is unknown.
[[nodiscard]] PCCL_API double net_rate(const Net& net);
[[nodiscard]] PCCL_API double c2c_rate(const C2c& c2c);
/// What one channel should carry at most: about what a thread block moves.
[[nodiscard]] PCCL_API double channel_rate(int sm);

/// The usual generation of the PCIe of such a GPU.
[[nodiscard]] PCCL_API std::string_view usual_link_speed(int sm);

}  // namespace pccl::topo
