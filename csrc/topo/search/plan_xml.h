// SPDX-License-Identifier: Apache-2.0

// NCCL's graph XML, version 1: writer and reader of plans.
//
// NCCL gives all channels of a graph one bandwidth. An attribute `bandwidth` of each channel, which
// NCCL ignores, stores PCCL's individual ones, and an attribute of the graph stores the number of
// nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <pccl/status.h>
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// Returns one <graph> for each plan; `topology` is the one for which they were made.
[[nodiscard]] PCCL_API std::string plan_xml(const std::vector<ChannelPlan>& plans,
                                            const Topology& topology);

/// Parses plans for rings, trees and heads; skips graphs of other kinds (CollNet), and graphs
/// without channels. kInvalidArgument, "<name>:<line>: ...": a channel names devices that the
/// machine does not have, or lists a GPU twice or not at all. Parsed plans are not marked optimal,
/// and their bound is infinite.
[[nodiscard]] PCCL_API Result<std::vector<ChannelPlan>> parse_plan_xml(std::string_view text,
                                                                       std::string_view name,
                                                                       const Topology& topology);

}  // namespace pccl::topo
