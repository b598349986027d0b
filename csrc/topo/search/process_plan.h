// The plan of a process: what the search finds, and the files that PCCL_GRAPH_FILE and
// PCCL_GRAPH_DUMP_FILE name (docs/configuration.md).
#pragma once

#include "csrc/base/config.h"
#include "csrc/base/status.h"
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// What search() finds, or else what PCCL_GRAPH_FILE holds for the pattern; dumped where the
/// environment says so.
[[nodiscard]] PCCL_API Result<Plan> plan(const Topology& topology, const SearchOptions& options,
                                         const Config& config = process_config());

}  // namespace pccl::topo
