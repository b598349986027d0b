// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/graph/names.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace pccl::topo {
namespace {

constexpr std::array<std::string_view, 6> kNodes{"gpu", "pci", "nvs", "cpu", "nic", "net"};
constexpr std::array<std::string_view, 6> kLinks{"LOC", "NVL", "C2C", "PCI", "SYS", "NET"};
constexpr std::array<std::string_view, 12> kPaths{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                  "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};
constexpr std::array<std::string_view, 3> kPatterns{"ring", "tree", "heads"};

template <typename Enum, std::size_t Count>
std::optional<Enum> find(const std::array<std::string_view, Count>& names, std::string_view name) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) return std::nullopt;
    return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view to_string(NodeType type) { return kNodes[static_cast<std::size_t>(type)]; }
std::string_view to_string(LinkType type) { return kLinks[static_cast<std::size_t>(type)]; }
std::string_view to_string(PathType type) { return kPaths[static_cast<std::size_t>(type)]; }
std::string_view to_string(Pattern pattern) { return kPatterns[static_cast<std::size_t>(pattern)]; }

std::optional<PathType> path_type_named(std::string_view name) {
    return find<PathType>(kPaths, name);
}

}  // namespace pccl::topo
