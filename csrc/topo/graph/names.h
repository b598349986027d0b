// The words of the field: kinds of nodes, links and paths, and patterns of channels.
#pragma once

#include <optional>
#include <string_view>

#include "csrc/base/export.h"

namespace pccl::topo {

enum class NodeType { kGpu, kPci, kNvSwitch, kCpu, kNic, kNet };

enum class LinkType { kLocal, kNvLink, kC2c, kPci, kSys, kNet };

/// What a path crosses; a smaller one is better.
enum class PathType {
    kLoc,  // the same device
    kNvl,  // NVLink
    kNvb,  // NVLink through one other GPU
    kC2c,  // chip-to-chip link to the CPU
    kPix,  // at most one PCIe switch
    kPxb,  // several PCIe switches
    kP2c,  // chip-to-chip link to the CPU, then PCIe
    kPxn,  // NVLink to the GPU beside the NIC
    kPhb,  // the host bridge of a CPU
    kSys,  // from one NUMA node to another
    kNet,  // the network
    kDis,  // there is none
};

enum class Pattern { kRing, kTree, kHeads };

[[nodiscard]] PCCL_API std::string_view to_string(NodeType type);
[[nodiscard]] PCCL_API std::string_view to_string(LinkType type);
/// "NVL", "PIX", ...
[[nodiscard]] PCCL_API std::string_view to_string(PathType type);
[[nodiscard]] PCCL_API std::string_view to_string(Pattern pattern);

[[nodiscard]] PCCL_API std::optional<PathType> path_type_named(std::string_view name);

}  // namespace pccl::topo
