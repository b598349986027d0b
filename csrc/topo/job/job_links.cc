// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/job/job_links.h"

#include <algorithm>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::topo {
namespace {

/// Returns the CPU of a NUMA node; the first one if that node is not found.
int cpu_of(const Graph& graph, int numa) {
    for (const int cpu : graph.cpus())
        if (graph.node(cpu).dev == numa) return cpu;
    return graph.cpus().empty() ? -1 : graph.cpus().front();
}

}  // namespace

JobLinks::JobLinks(JobTopology job) : job_(std::move(job)) {
    for (const HostTopology& host : job_.hosts()) {
        const Graph& graph = host.topology.graph();
        for (std::size_t place = 0; place < host.ranks.size(); ++place)
            nodes_[host.ranks[place]] = cpu_of(graph, host.numa_of(place));
        const int port = network_port(host);
        ports_.push_back(port == kNoNet ? kNoNet : graph.nets()[at(port)]);
    }
}

int JobLinks::node_of(Rank rank) const {
    const auto found = nodes_.find(rank);
    return found == nodes_.end() ? -1 : found->second;
}

const std::vector<Charge>& JobLinks::path(int host, int from, int to) const {
    const auto [known, is_new] = paths_.try_emplace({host, from, to});
    if (is_new && from >= 0 && to >= 0)
        known->second = job_.hosts()[at(host)].topology.paths().charges(from, to);
    return known->second;
}

std::vector<Charge> JobLinks::way_between(int host, Rank from, Rank to) const {
    const bool leaves = job_.host_of(to) != host;
    const bool comes = job_.host_of(from) != host;
    if (leaves && comes) return {};
    if (!leaves && !comes) return path(host, node_of(from), node_of(to));
    if (const int port = ports_[at(host)]; port != kNoNet)
        return leaves ? path(host, node_of(from), port) : path(host, port, node_of(to));
    return {{leaves ? LinkOfHost::kOut : LinkOfHost::kIn, 1}};
}

void JobLinks::charge(int host, Rank from, Rank to, double bytes, LinkLoads& loads) const {
    for (const Charge& charge : way_between(host, from, to))
        loads[{host, charge.link}] += bytes * charge.weight;
}

double JobLinks::bandwidth(const LinkOfHost& link) const {
    if (link.link < 0) return job_.network_bandwidth(link.host);
    const Link& own = job_.hosts()[at(link.host)].topology.graph().link(link.link);
    // A measured bandwidth has precedence over the port's declared one.
    const int port = ports_[at(link.host)];
    const bool is_port = port != kNoNet && (own.from == port || own.to == port);
    return is_port ? job_.network_bandwidth(link.host) : own.bandwidth;
}

JobLinks::Busiest JobLinks::busiest(const LinkLoads& loads) const {
    Busiest busiest;
    for (const auto& [link, bytes] : loads) {
        const double seconds = bytes / (bandwidth(link) * 1e9);
        // Among equally busy links of a host, the network is more informative than the link to it.
        const bool is_nearer_the_network =
            seconds == busiest.seconds && link.host == busiest.link.host;
        if (seconds > busiest.seconds || is_nearer_the_network) busiest = {link, seconds};
    }
    return busiest;
}

std::string JobLinks::name(const LinkOfHost& link) const {
    const HostTopology& host = job_.hosts()[at(link.host)];
    if (link.link < 0)
        return concat(host.network.interface.empty() ? "the network" : host.network.interface,
                      " of ", host.name);
    const Graph& graph = host.topology.graph();
    const Node& from = graph.node(graph.link(link.link).from);
    const Node& to = graph.node(graph.link(link.link).to);
    for (const Node* end : {&from, &to})
        if (end->type == NodeType::kNet) return concat(end->label, " of ", host.name);
    return concat(from.name, "-", to.name, " of ", host.name);
}

}  // namespace pccl::topo
