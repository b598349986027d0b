// The topology of this machine: what is detected, with the files that PCCL_TOPO_FILE and
// PCCL_TOPO_DUMP_FILE name (docs/configuration.md).
//
// Of two sources the more precise one counts, attribute by attribute (Source): the user's file, the
// vendor's, NVML, sysfs, hwloc, the user's assumptions, usual values.
#pragma once

#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Where a vendor of machines installs a topology for NCCL.
inline constexpr const char* kVendorFile = "/var/run/nvidia-topologyd/virtualTopology.xml";

/// This machine's. kUnavailable or kInvalidArgument when a file that the environment names cannot
/// be used, kResourceExhausted when this process may open no more; whatever else cannot be read is
/// left out, with a warning where that matters.
[[nodiscard]] PCCL_API Result<Topology> detect(const LoadOptions& options,
                                               const Config& config = process_config());

}  // namespace pccl::topo
