// hwloc's XML (lstopo machine.xml), versions 2 and 3: the PCIe tree, NUMA nodes, and the names of
// ports.
//
// It holds neither NVLinks nor speeds of ports, and of a PCIe link the present speed only, which is
// not what an idle GPU can do; so these are left to assumptions and usual values.
#pragma once

#include <string_view>

#include "csrc/base/status.h"
#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

/// Whether the text looks like hwloc's XML.
[[nodiscard]] bool is_hwloc_xml(std::string_view text);

/// Reads a machine, as bounded as parse_machine_xml. `source` is who says what the text says.
/// kUnsupported for another version of hwloc's XML, with the version and what converts it.
[[nodiscard]] Result<Machine> parse_hwloc_xml(std::string_view text, std::string_view name,
                                              Source source = Source::kUserFile);

}  // namespace pccl::topo
