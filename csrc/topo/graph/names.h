// SPDX-License-Identifier: Apache-2.0

// Names of node types, link types, path types and channel patterns.
#pragma once

#include <optional>
#include <string_view>

#include <pccl/export.h>

namespace pccl::topo {

enum class NodeType { kGpu, kPci, kNvSwitch, kCpu, kNic, kNet };

enum class LinkType { kLocal, kNvLink, kC2c, kPci, kSys, kNet };

/// Type of a path by the hardware that it crosses; smaller values are better.
enum class PathType {
    kLoc,  // the same device
    kNvl,  // NVLink
    kNvb,  // NVLink through one other GPU
    kC2c,  // chip-to-chip link to the CPU
    kPix,  // at most one PCIe switch
    kPxb,  // several PCIe switches
    kP2c,  // chip-to-chip link to the CPU, then PCIe
    kPxn,  // NVLink to a GPU close to the NIC
    kPhb,  // the host bridge of a CPU
    kSys,  // between NUMA nodes
    kNet,  // the network
    kDis,  // disconnected
};

enum class Pattern { kRing, kTree, kHeads };

[[nodiscard]] PCCL_API std::string_view to_string(NodeType type);
[[nodiscard]] PCCL_API std::string_view to_string(LinkType type);
/// Returns "NVL", "PIX", ...
[[nodiscard]] PCCL_API std::string_view to_string(PathType type);
[[nodiscard]] PCCL_API std::string_view to_string(Pattern pattern);

[[nodiscard]] PCCL_API std::optional<PathType> path_type_named(std::string_view name);

}  // namespace pccl::topo
