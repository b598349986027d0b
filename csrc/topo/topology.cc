// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/topology.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/file.h"
#include "csrc/topo/machine/completion.h"
#include "csrc/topo/xml/hwloc_xml.h"
#include "csrc/topo/xml/machine_xml.h"
#include "csrc/topo/xml/xml_text.h"

namespace pccl::topo {
namespace {

std::string printed(const Warning& warning) {
    return concat(warning.name, ": ", warning.subject, ": ", warning.message);
}

Status refuse(const Warnings& warnings) {
    std::string names;
    for (const Warning& warning : warnings)
        if (names.find(warning.name) == std::string::npos)
            names += concat(names.empty() ? "" : ", ", warning.name);
    return Status::invalid_argument(
        concat("strict: ", printed(warnings.front()), "; all warnings: ", names));
}

/// Returns the measured rate of an NVLink: between two GPUs, that of a copy in this direction; to
/// or from the NVSwitches, the maximum of the copies that cross it.
std::optional<double> rate_of(const Graph& graph, const Calibration& measured, const Link& link) {
    if (link.type != LinkType::kNvLink) return std::nullopt;
    const auto gpus_at = [&](int end) {
        if (graph.node(end).type == NodeType::kGpu) return std::vector<int>{end};
        return graph.gpus();
    };
    std::optional<double> most;
    for (const int from : gpus_at(link.from))
        for (const int to : gpus_at(link.to))
            if (const auto times = measured.gpus(graph.node(from).label, graph.node(to).label))
                most = std::max(most.value_or(0), times->bandwidth);
    return most;
}

std::string digest_of(const Graph& graph) {
    Digest digest;
    for (const Node& node : graph.nodes())
        digest.add(concat(to_string(node.type), node.host, ",", node.sm, ",", node.usable, ";"));
    for (const Link& link : graph.links())
        digest.add(concat(link.from, ">", link.to, to_string(link.type), link.bandwidth, ";"));
    return digest.text();
}

}  // namespace

Result<Topology> Topology::make(Machine machine, const LoadOptions& options, Warnings warnings) {
    PCCL_TRY(check(options.assume));
    complete(machine, options.assume, warnings);
    repair(machine, warnings);
    if (options.strict && !warnings.empty()) return refuse(warnings);
    PCCL_ASSIGN_OR_RETURN(
        Graph graph,
        Graph::build(machine, {.multi_node_nvlink = options.assume.multi_node_nvlink}));
    return Topology(std::make_shared<const TopologyParts>(std::move(machine), std::move(warnings),
                                                          options.assume, std::move(graph)));
}

Topology::TopologyParts::TopologyParts(Machine the_machine, Warnings the_warnings,
                                       const Assumptions& the_assume, Graph the_graph)
    : machine(std::move(the_machine)),
      warnings(std::move(the_warnings)),
      assume(the_assume),
      graph(std::move(the_graph)),
      paths(graph, {.peer_to_peer = assume.peer_to_peer}),
      digest(digest_of(graph)) {}

Result<Topology> Topology::parse(std::string_view xml, std::string_view name,
                                 const LoadOptions& options) {
    Warnings warnings;
    auto machine = is_hwloc_xml(xml) ? parse_hwloc_xml(xml, name)
                                     : parse_machine_xml(xml, name, Source::kUserFile, warnings);
    if (!machine.is_ok()) return machine.status();
    auto topology = make(*std::move(machine), options, std::move(warnings));
    if (!topology.is_ok()) return topology.status().with_context(name);
    return topology;
}

Result<Topology> Topology::load(const std::string& path, const LoadOptions& options) {
    PCCL_ASSIGN_OR_RETURN(const std::string text, sys::read_file(path, XmlLimits::kBytes));
    return parse(text, path, options);
}

Topology Topology::with(Warnings warnings) const {
    auto parts =
        std::make_shared<TopologyParts>(machine(), std::move(warnings), assumptions(), graph());
    parts->digest = parts_->digest;
    return Topology(std::move(parts));
}

Topology Topology::with(const Calibration& calibration) const {
    if (!calibration.has_gpus()) return *this;
    Graph measured =
        graph().with([&](const Link& link) { return rate_of(graph(), calibration, link); });
    auto parts =
        std::make_shared<TopologyParts>(machine(), warnings(), assumptions(), std::move(measured));
    parts->digest = digest();
    return Topology(std::move(parts));
}

std::string Topology::to_xml() const { return machine_xml(machine()); }

const std::string& Topology::digest() const { return parts_->digest; }

}  // namespace pccl::topo
