// hwloc's XML (lstopo machine.xml), read by hwloc itself where libhwloc is installed.
#pragma once

#include <string_view>

#include "csrc/base/status.h"
#include "csrc/topo/machine.h"
#include "csrc/topo/warning.h"

namespace pccl::topo {

/// Whether the text looks like hwloc's XML.
[[nodiscard]] bool is_hwloc_xml(std::string_view text);

/// kUnsupported without libhwloc.
[[nodiscard]] Result<Machine> parse_hwloc_xml(std::string_view text, std::string_view name,
                                              Warnings& warnings);

}  // namespace pccl::topo
