#include "csrc/topo/hwloc_xml.h"

#include "csrc/base/text.h"

namespace pccl::topo {

bool is_hwloc_xml(std::string_view text) {
    return text.find("<topology") != std::string_view::npos;
}

Result<Machine> parse_hwloc_xml(std::string_view /*text*/, std::string_view name,
                                Warnings& /*warnings*/) {
    return Status::unsupported(concat(name, ": hwloc's XML needs libhwloc"));
}

}  // namespace pccl::topo
