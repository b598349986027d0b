// SPDX-License-Identifier: Apache-2.0

// Reader of hwloc's XML (lstopo machine.xml), versions 2 and 3: the PCIe tree, NUMA nodes, and the
// names of ports.
//
// The XML contains neither NVLinks nor speeds of ports. It contains only the current speed of a
// PCIe link, which is below the maximum while a GPU is idle. These attributes are left to
// assumptions and usual values.
#pragma once

#include <string_view>

#include <pccl/status.h>
#include "csrc/topo/machine/machine.h"

namespace pccl::topo {

/// Returns whether the text has the form of hwloc's XML.
[[nodiscard]] bool is_hwloc_xml(std::string_view text);

/// Reads a machine, with the limits of parse_machine_xml. `source` becomes the source of its
/// attributes. kUnsupported: another version of hwloc's XML; the message contains the version and a
/// converter.
[[nodiscard]] Result<Machine> parse_hwloc_xml(std::string_view text, std::string_view name,
                                              Source source = Source::kUserFile);

}  // namespace pccl::topo
