#include "csrc/topo/attribute.h"

#include <array>
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

}  // namespace pccl::topo
