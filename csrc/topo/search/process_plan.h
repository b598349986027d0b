// SPDX-License-Identifier: Apache-2.0

// Plan of a process: the plan in PCCL_GRAPH_FILE or the result of a search, which goes to
// PCCL_GRAPH_DUMP_FILE (docs/reference/configuration.md).
#pragma once

#include <pccl/status.h>
#include "csrc/base/config.h"
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Returns the plan that PCCL_GRAPH_FILE contains for the pattern, or else the result of search(),
/// which it writes to PCCL_GRAPH_DUMP_FILE if that is set.
[[nodiscard]] PCCL_API Result<ChannelPlan> plan(const Topology& topology,
                                                const SearchOptions& options,
                                                const Config& config = process_config());

}  // namespace pccl::topo
