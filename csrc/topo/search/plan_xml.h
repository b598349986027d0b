// NCCL's graph XML, version 1: plans in and out.
//
// NCCL gives all channels of a graph one bandwidth; an attribute `bandwidth` of each channel, which
// NCCL ignores, keeps ours apart, and one of the graph keeps the number of nodes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/topo/search/plan.h"
#include "csrc/topo/topology.h"

namespace pccl::topo {

/// One <graph> for each plan, of the machine that they were made for.
[[nodiscard]] PCCL_API std::string plan_xml(const std::vector<Plan>& plans,
                                            const Topology& topology);

/// Plans for rings, trees and heads; graphs of other kinds (CollNet), and those without
/// channels, are left out.
/// kInvalidArgument,
/// "<name>:<line>: ...", for a channel that names devices which the machine has not, or some GPU
/// twice or not at all. A plan that was read claims no optimum, and its bound is infinite.
[[nodiscard]] PCCL_API Result<std::vector<Plan>> parse_plan_xml(std::string_view text,
                                                                std::string_view name,
                                                                const Topology& topology);

}  // namespace pccl::topo
