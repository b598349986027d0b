// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/search/problem.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/topo/machine/rates.h"

namespace pccl::topo {

Route Route::reversed() const {
    Route route{order, net_out, net_in};
    std::reverse(route.order.begin(), route.order.end());
    return route;
}

Problem::Problem(const Topology& topology, const SearchOptions& options, const TypeLimits& limits)
    : topology_(topology),
      options_(options),
      limits_(limits),
      gpus_(static_cast<int>(topology.graph().gpus().size())) {
    const Graph& graph = topology.graph();
    for (const Link& link : graph.links()) capacity_.push_back(link.bandwidth);
    hop_capacity_ = measure_hops();
    if (!is_multi_node()) return;
    for (int net = 0; std::cmp_less(net, graph.nets().size()); ++net)
        if (graph.node(net_node(net)).usable && !reach(net).empty()) nets_.push_back(net);
    net_capacity_ = measure_nets();
}

int Problem::gpu_node(int gpu) const { return topology_.graph().gpus()[at(gpu)]; }
int Problem::net_node(int net) const { return topology_.graph().nets()[at(net)]; }

std::vector<int> Problem::reach(int net) const {
    std::vector<int> found;
    for (int gpu = 0; gpu < gpus_; ++gpu)
        if (topology_.paths().path(gpu_node(gpu), net_node(net)).type <= limits_.inter)
            found.push_back(gpu);
    return found;
}

std::vector<int> Problem::closest(int net) const {
    std::vector<int> found;
    Path best;
    for (const int gpu : reach(net)) {
        const Path path = topology_.paths().path(gpu_node(gpu), net_node(net));
        const auto rank = std::pair(path.type, -path.bandwidth);
        if (!found.empty() && rank > std::pair(best.type, -best.bandwidth)) continue;
        if (found.empty() || rank < std::pair(best.type, -best.bandwidth)) found.clear();
        best = path;
        found.push_back(gpu);
    }
    return found;
}

bool Problem::may_hop(int from, int to) const {
    return topology_.paths().path(gpu_node(from), gpu_node(to)).type <= limits_.intra;
}

void Problem::add(Usage& usage, int from, int to, double weight) const {
    for (const Charge& charge : topology_.paths().charges(from, to))
        usage[charge.link] += charge.weight * weight;
}

void Problem::add_hop(Usage& usage, int from, int to) const {
    if (is_ring()) return add(usage, gpu_node(from), gpu_node(to), 1);
    add(usage, gpu_node(from), gpu_node(to), 0.5);
    add(usage, gpu_node(to), gpu_node(from), 0.5);
}

Usage Problem::hop(int from, int to) const {
    Usage usage;
    add_hop(usage, from, to);
    return usage;
}

Usage Problem::enter(int net, int gpu) const {
    Usage usage;
    add(usage, net_node(net), gpu_node(gpu), 1);
    return usage;
}

Usage Problem::leave(int gpu, int net) const {
    Usage usage;
    add(usage, gpu_node(gpu), net_node(net), 1);
    return usage;
}

void Problem::add_nets(Usage& usage, const Route& route, double weight) const {
    const int last = is_ring() ? route.order.back() : route.order.front();
    add(usage, net_node(route.net_in), gpu_node(route.order.front()), weight);
    add(usage, gpu_node(last), net_node(route.net_out), weight);
}

/// Adds a GPU's NVLinks to the switch, in both directions.
void Problem::add_head(Usage& usage, int gpu, double weight) const {
    const Graph& graph = topology_.graph();
    for (const int link : graph.links_from(gpu_node(gpu))) {
        if (graph.node(graph.link(link).to).type != NodeType::kNvSwitch) continue;
        usage[link] += weight;
        usage[Graph::reverse(link)] += weight;
    }
}

double Problem::net_share() const {
    const double nodes = options_.nodes;
    return options_.pattern == Pattern::kTree ? (nodes - 1) / nodes : 1;
}

void Problem::add_route(Usage& usage, const Route& route) const {
    if (is_multi_node()) add_nets(usage, route, net_share());
    if (options_.pattern == Pattern::kHeads) {
        add_head(usage, route.order.front(), 1);
        for (const int gpu : route.order) add_head(usage, gpu, 1);
        return;
    }
    for (std::size_t i = 1; i < route.order.size(); ++i)
        add_hop(usage, route.order[i - 1], route.order[i]);
    if (!is_multi_node() && is_ring() && route.order.size() > 1)
        add_hop(usage, route.order.back(), route.order.front());
}

Usage Problem::usage(const Route& route) const {
    Usage usage;
    add_route(usage, route);
    if (!route.is_one_of_a_pair()) return usage;
    add_route(usage, route.reversed());
    for (auto& [link, weight] : usage) weight /= 2;
    return usage;
}

bool Problem::is_switched() const {
    const Graph& graph = topology_.graph();
    if (gpus_ < 2 || limits_.intra != PathType::kNvl || graph.switches().size() != 1) return false;
    const int nvswitch = graph.switches().front();
    return std::all_of(graph.gpus().begin(), graph.gpus().end(), [&](int gpu) {
        const auto links = graph.links_from(gpu);
        return std::any_of(links.begin(), links.end(),
                           [&](int link) { return graph.link(link).to == nvswitch; });
    });
}

Problem::HopCapacity Problem::measure_hops() const {
    HopCapacity found{.least = std::numeric_limits<double>::infinity()};
    std::vector<bool> counted(capacity_.size());
    for (int from = 0; from < gpus_; ++from) {
        double width = 0;
        for (int to = 0; to < gpus_; ++to) {
            if (from == to || !may_hop(from, to)) continue;
            const int first = topology_.paths().links(gpu_node(from), gpu_node(to)).front();
            if (!counted[at(first)]) width += capacity_[at(first)];
            counted[at(first)] = true;
        }
        found.least = std::min(found.least, width);
        found.most = std::max(found.most, width);
        found.sum += width;
    }
    return found;
}

double Problem::measure_nets() const {
    const Graph& graph = topology_.graph();
    std::vector<double> usable(capacity_.size());
    std::vector<int> sources;
    for (const int net : nets_) {
        sources.push_back(net_node(net));
        for (const int gpu : reach(net))
            for (const int link : topology_.paths().links(net_node(net), gpu_node(gpu)))
                usable[at(link)] = capacity_[at(link)];
    }
    return largest_flow(graph, std::move(usable), sources, graph.gpus());
}

double Problem::bound(int channels) const {
    double bound = std::numeric_limits<double>::infinity();
    if (is_multi_node()) bound = net_capacity_ / net_share();
    if (gpus_ == 1) return is_multi_node() ? bound : kLocalRate;
    if (options_.pattern == Pattern::kHeads) {
        // Every GPU carries all channels, and the channels of which it is the head once more.
        const int heads = std::min(channels, gpus_);
        const double widest = heads < gpus_ ? heads * hop_capacity_.most : hop_capacity_.sum;
        return std::min(bound, widest / (heads + 1));
    }
    // A hop leaves every GPU of a closed ring, and all GPUs but one of an open ring or a chain.
    const bool is_closed = is_ring() && !is_multi_node();
    bound = std::min(bound, is_closed ? hop_capacity_.least : hop_capacity_.sum / (gpus_ - 1));
    // With few channels, at least one GPU is never an end.
    const int ends = is_ring() ? channels : 2 * channels;
    if (!is_closed && ends < gpus_) bound = std::min(bound, hop_capacity_.most);
    return bound;
}

double largest_flow(const Graph& graph, std::vector<double> capacity,
                    const std::vector<int>& sources, const std::vector<int>& sinks) {
    constexpr double kTiny = 1e-9;
    std::vector<bool> is_sink(graph.nodes().size());
    for (const int sink : sinks) is_sink[at(sink)] = true;
    double flow = 0;
    while (true) {
        std::vector<int> by(graph.nodes().size(), -1);
        std::vector<int> queue = sources;
        std::vector<bool> seen(graph.nodes().size());
        for (const int source : sources) seen[at(source)] = true;
        int end = -1;
        for (std::size_t i = 0; i < queue.size() && end < 0; ++i) {
            for (const int link : graph.links_from(queue[i])) {
                const int next = graph.link(link).to;
                if (seen[at(next)] || capacity[at(link)] <= kTiny) continue;
                seen[at(next)] = true;
                by[at(next)] = link;
                queue.push_back(next);
                if (is_sink[at(next)]) end = next;
                if (end >= 0) break;
            }
        }
        if (end < 0) return flow;
        double width = std::numeric_limits<double>::infinity();
        for (int node = end; by[at(node)] >= 0; node = graph.link(by[at(node)]).from)
            width = std::min(width, capacity[at(by[at(node)])]);
        for (int node = end; by[at(node)] >= 0; node = graph.link(by[at(node)]).from) {
            capacity[at(by[at(node)])] -= width;
            capacity[at(Graph::reverse(by[at(node)]))] += width;
        }
        flow += width;
    }
}

}  // namespace pccl::topo
