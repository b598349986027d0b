// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/machine/attribute.h"

#include <array>
#include <charconv>
#include <cstddef>

namespace pccl::topo {
namespace {

constexpr std::array<std::string_view, 9> kSources{
    "default", "assumption", "hwloc", "sysfs", "verbs", "nvml", "vendor file", "file", "repair"};
constexpr std::array<std::string_view, 3> kProvenances{"measured", "declared", "assumed"};

}  // namespace

std::string_view to_string(Source source) { return kSources[static_cast<std::size_t>(source)]; }
std::string_view to_string(Provenance provenance) {
    return kProvenances[static_cast<std::size_t>(provenance)];
}

std::optional<std::int64_t> parse_number(std::string_view text) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    if (hex) text.remove_prefix(2);
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, hex ? 16 : 10);
    if (error != std::errc{} || stop != end || text.empty()) return std::nullopt;
    return value;
}

}  // namespace pccl::topo
