// SPDX-License-Identifier: Apache-2.0

// Topology of this machine: it is detected, merged with the file of PCCL_TOPO_FILE, and written to
// that of PCCL_TOPO_DUMP_FILE (docs/reference/configuration.md).
//
// For each attribute, the source with the higher precedence wins (Source): the user's file, the
// vendor's, NVML, sysfs, hwloc, the user's assumptions, usual values.
#pragma once

#include <pccl/status.h>
#include "csrc/base/config.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Path at which a vendor of machines installs a topology for NCCL.
inline constexpr const char* kVendorFile = "/var/run/nvidia-topologyd/virtualTopology.xml";

/// Detects this machine. kUnavailable or kInvalidArgument: a file named by the environment is
/// unusable. kResourceExhausted: this process cannot open more files. Other unreadable sources are
/// skipped, with a warning where that matters.
[[nodiscard]] PCCL_API Result<Topology> detect(const LoadOptions& options,
                                               const Config& config = process_config());

}  // namespace pccl::topo
