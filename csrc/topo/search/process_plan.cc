// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/process_plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "csrc/sys/sysfs/file.h"
#include "csrc/topo/search/plan_xml.h"
#include "csrc/topo/search/search.h"
#include "csrc/topo/xml/xml_text.h"

namespace pccl::topo {
namespace {

Result<std::vector<ChannelPlan>> load_plans(const std::string& path, const Topology& topology) {
    PCCL_ASSIGN_OR_RETURN(const std::string text, sys::read_file(path, XmlLimits::kBytes));
    return parse_plan_xml(text, path, topology);
}

/// Keeps the plans of other patterns in the file if they fit the machine.
Status dump(const ChannelPlan& plan, const Topology& topology, const std::string& path) {
    std::vector<ChannelPlan> plans;
    if (auto others = load_plans(path, topology); others.is_ok()) plans = *std::move(others);
    std::erase_if(plans, [&](const ChannelPlan& other) { return other.pattern == plan.pattern; });
    plans.push_back(plan);
    std::stable_sort(plans.begin(), plans.end(), [](const ChannelPlan& a, const ChannelPlan& b) {
        return a.pattern < b.pattern;
    });
    return sys::write_file(path, plan_xml(plans, topology));
}

}  // namespace

Result<ChannelPlan> plan(const Topology& topology, const SearchOptions& options,
                         const Config& config) {
    PCCL_TRY(check_settings(config));
    if (!config.graph_file.empty()) {
        auto plans = load_plans(config.graph_file, topology);
        if (!plans.is_ok()) return plans.status().with_context("PCCL_GRAPH_FILE");
        for (ChannelPlan& known : *plans)
            if (known.pattern == options.pattern && (known.nodes > 1) == (options.nodes > 1))
                return std::move(known);
    }
    PCCL_ASSIGN_OR_RETURN(ChannelPlan found, search(topology, options));
    if (!config.graph_dump_file.empty())
        PCCL_TRY(
            dump(found, topology, config.graph_dump_file).with_context("PCCL_GRAPH_DUMP_FILE"));
    return found;
}

}  // namespace pccl::topo
