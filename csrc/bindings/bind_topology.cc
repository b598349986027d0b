// SPDX-License-Identifier: Apache-2.0

// Bindings of pccl.topology: machines, their graphs and paths, and plans.

#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bindings/bind.h"
#include "csrc/bindings/errors.h"
#include "csrc/bindings/named_results.h"
#include "csrc/bindings/names.h"
#include "csrc/topo/detect/detect.h"
#include "csrc/topo/machine/facts.h"
#include "csrc/topo/search/plan_xml.h"
#include "csrc/topo/search/process_plan.h"

namespace pccl::bindings {

namespace py = pybind11;
using py::arg;
using topo::Topology;

namespace {

using Assumed = std::map<std::string, int>;

/// A plan and its machine.
struct PlanOf {
    topo::ChannelPlan plan;
    Topology topology;
};

struct PathOf {
    topo::Path path;
    std::vector<std::string> nodes;
    std::vector<topo::Charge> charges;
};

topo::LoadOptions options_of(const Assumed& assume, bool strict) {
    topo::LoadOptions options;
    options.strict = strict;
    const auto flag = [](const std::string& name, int value) {
        if (value == 0 || value == 1) return value == 1;
        throw_status(
            Status::invalid_argument(concat("assume ", name, "=", value, ": must be 0 or 1")));
    };
    for (const auto& [name, value] : assume) {
        if (name == "sm")
            options.assume.sm = value;
        else if (name == "nvlinks")
            options.assume.nvlinks = value;
        else if (name == "net_speed")
            options.assume.net_speed = value;
        else if (name == "p2p")
            options.assume.peer_to_peer = flag(name, value);
        else if (name == "mnnvl")
            options.assume.multi_node_nvlink = flag(name, value);
        else
            throw_status(Status::invalid_argument(
                concat("'", name, "' cannot be assumed: sm, nvlinks, net_speed, p2p, mnnvl")));
    }
    return options;
}

Topology load(const std::string& path, const Assumed& assume, bool strict) {
    const topo::LoadOptions options = options_of(assume, strict);
    return released([&] { return Topology::load(path, options); });
}

Topology parse_topology(const std::string& text, const std::string& name, const Assumed& assume,
                        bool strict) {
    const topo::LoadOptions options = options_of(assume, strict);
    return released([&] { return Topology::parse(text, name, options); });
}

Topology detect(const Assumed& assume, bool strict) {
    const topo::LoadOptions options = options_of(assume, strict);
    return released([&] { return topo::detect(options); });
}

int find(const topo::Graph& graph, const std::string& name) {
    const int node = graph.find(name);
    if (node >= 0) return node;
    throw_status(Status::invalid_argument(concat("no device, or several, '", name, "': there are ",
                                                 graph.gpus().size(), " GPUs (gpu0, ...), ",
                                                 graph.nets().size(), " ports (net0, ...) and ",
                                                 graph.cpus().size(), " CPUs (cpu0, ...)")));
}

PathOf path_between(const Topology& self, const std::string& from, const std::string& to) {
    const topo::Graph& graph = self.graph();
    const int first = find(graph, from);
    const int last = find(graph, to);
    PathOf found{self.paths().path(first, last),
                 {graph.node(first).name},
                 self.paths().charges(first, last)};
    for (const int link : self.paths().links(first, last))
        found.nodes.push_back(graph.node(graph.link(link).to).name);
    return found;
}

PlanOf search(const Topology& self, const std::string& pattern, int nodes, int max_channels) {
    const topo::SearchOptions options{
        .pattern = named(pattern, topo::Pattern::kHeads, "pattern of channels"),
        .nodes = nodes,
        .max_channels = max_channels};
    return {released([&] { return topo::plan(self, options); }), self};
}

std::vector<PlanOf> read_plans(const Topology& self, const std::string& text,
                               const std::string& name) {
    std::vector<PlanOf> plans;
    for (topo::ChannelPlan& plan : released([&] { return topo::parse_plan_xml(text, name, self); }))
        plans.push_back({std::move(plan), self});
    return plans;
}

void bind_values(extension::Module& module) {
    extension::Class<topo::Warning>(module, "TopologyWarning")
        .def_readonly("name", &topo::Warning::name)
        .def_readonly("subject", &topo::Warning::subject)
        .def_readonly("message", &topo::Warning::message)
        .def_readonly("repair", &topo::Warning::repair)
        .def("__repr__", [](const topo::Warning& self) {
            return concat(self.name, ": ", self.subject, ": ", self.message,
                          self.repair.empty() ? "" : "; assumed: ", self.repair);
        });
    extension::Class<topo::Fact>(module, "TopologyFact")
        .def_readonly("device", &topo::Fact::device)
        .def_readonly("attribute", &topo::Fact::attribute)
        .def_readonly("value", &topo::Fact::value)
        .def_property_readonly("source",
                               [](const topo::Fact& self) { return to_string(self.source); })
        .def_property_readonly(
            "provenance",
            [](const topo::Fact& self) { return to_string(topo::provenance(self.source)); })
        .def("__repr__", [](const topo::Fact& self) {
            return concat(self.device, " ", self.attribute, "=", self.value, " (",
                          to_string(self.source), ")");
        });
    extension::Class<topo::Node>(module, "TopologyNode")
        .def_readonly("name", &topo::Node::name)
        .def_readonly("label", &topo::Node::label)
        .def_property_readonly("type", [](const topo::Node& self) { return to_string(self.type); })
        .def_readonly("host", &topo::Node::host)
        .def_readonly("sm", &topo::Node::sm)
        .def_readonly("dev", &topo::Node::dev)
        .def_readonly("rank", &topo::Node::rank)
        .def_readonly("gdr", &topo::Node::gdr)
        .def_readonly("usable", &topo::Node::usable)
        .def("__repr__", [](const topo::Node& self) { return self.name; });
}

void bind_paths(extension::Module& module) {
    extension::Class<PathOf>(module, "TopologyPath")
        .def_property_readonly("type", [](const PathOf& self) { return to_string(self.path.type); })
        .def_property_readonly("bandwidth", [](const PathOf& self) { return self.path.bandwidth; })
        .def_property_readonly("hops", [](const PathOf& self) { return self.path.hops; })
        .def_readonly("nodes", &PathOf::nodes)
        .def_property_readonly(
            "charges",
            [](const PathOf& self) {
                py::list charges;
                for (const topo::Charge& charge : self.charges)
                    charges.append(named_result("Charge", charge.link, charge.weight));
                return charges;
            })
        .def("__repr__", [](const PathOf& self) {
            return concat(to_string(self.path.type), ", ", self.path.bandwidth, " GB/s, ",
                          self.path.hops, " hops");
        });
}

py::object nets_of(const topo::Channel& channel) {
    if (channel.net_in == topo::kNoNet) return py::none();
    return named_result("Ports", channel.net_in, channel.net_out);
}

std::string printed_channel(const topo::Channel& channel) {
    std::string text = concat("GPUs ", spaced(channel.order), ": ", channel.bandwidth, " GB/s");
    if (channel.net_in == topo::kNoNet) return text;
    return concat(text, ", in by net", channel.net_in, ", out by net", channel.net_out);
}

void bind_plans(extension::Module& module) {
    extension::Class<topo::Channel>(module, "TopologyChannel")
        .def_readonly("bandwidth", &topo::Channel::bandwidth)
        .def_readonly("order", &topo::Channel::order)
        .def_property_readonly("nets", &nets_of)
        .def("__repr__", &printed_channel);
    extension::Class<PlanOf>(module, "TopologyPlan")
        .def_property_readonly("pattern",
                               [](const PlanOf& self) { return to_string(self.plan.pattern); })
        .def_property_readonly("nodes", [](const PlanOf& self) { return self.plan.nodes; })
        .def_property_readonly("channels", [](const PlanOf& self) { return self.plan.channels; })
        .def_property_readonly("type_intra",
                               [](const PlanOf& self) { return to_string(self.plan.type_intra); })
        .def_property_readonly("type_inter",
                               [](const PlanOf& self) { return to_string(self.plan.type_inter); })
        .def_property_readonly("bandwidth", [](const PlanOf& self) { return self.plan.bandwidth; })
        .def_property_readonly("bound", [](const PlanOf& self) { return self.plan.bound; })
        .def_property_readonly("optimal", [](const PlanOf& self) { return self.plan.optimal; })
        .def_property_readonly("seconds", [](const PlanOf& self) { return self.plan.seconds; })
        .def("xml", [](const PlanOf& self) { return topo::plan_xml({self.plan}, self.topology); })
        .def("__eq__", [](const PlanOf& a, const PlanOf& b) { return a.plan == b.plan; });
}

}  // namespace

void bind_topology(extension::Module& module) {
    bind_values(module);
    bind_paths(module);
    bind_plans(module);
    using Link = std::tuple<std::string, std::string, std::string_view, double, bool>;
    extension::Class<Topology>(module, "Topology")
        .def_static("load", &load, arg("path"), py::kw_only(), arg("assume"), arg("strict"))
        .def_static("parse", &parse_topology, arg("text"), arg("name"), py::kw_only(),
                    arg("assume"), arg("strict"))
        .def_static("detect", &detect, py::kw_only(), arg("assume"), arg("strict"))
        .def_property_readonly("warnings", &Topology::warnings)
        .def_property_readonly("facts", [](const Topology& self) { return facts(self.machine()); })
        .def_property_readonly("nodes", [](const Topology& self) { return self.graph().nodes(); })
        .def_property_readonly("links",
                               [](const Topology& self) {
                                   const topo::Graph& graph = self.graph();
                                   std::vector<Link> links;
                                   for (const topo::Link& link : graph.links())
                                       links.emplace_back(
                                           graph.node(link.from).name, graph.node(link.to).name,
                                           to_string(link.type), link.bandwidth, link.is_measured);
                                   return links;
                               })
        .def_property_readonly("digest", &Topology::digest)
        .def("path", &path_between, arg("source"), arg("target"))
        .def("search", &search, arg("pattern"), py::kw_only(), arg("nodes"), arg("max_channels"))
        .def("read_plans", &read_plans, arg("text"), arg("name"))
        .def("xml", &Topology::to_xml)
        .def("__eq__",
             [](const Topology& a, const Topology& b) { return a.machine() == b.machine(); });
}

}  // namespace pccl::bindings
