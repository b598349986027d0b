// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/graph/paths.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <tuple>

#include "csrc/base/ids.h"

namespace pccl::topo {
namespace {

bool may_be_crossed(NodeType type) { return type != NodeType::kGpu && type != NodeType::kNet; }

Path joined(const Path& a, const Path& b, PathType least) {
    if (a.type == PathType::kDis || b.type == PathType::kDis) return {};
    return {.type = std::max({a.type, b.type, least}),
            .bandwidth = std::min(a.bandwidth, b.bandwidth),
            .hops = a.hops + b.hops};
}

/// Returns whether `a` is better.
bool is_better(const Path& a, const Path& b) {
    return std::tuple(a.type, -a.bandwidth, a.hops) < std::tuple(b.type, -b.bandwidth, b.hops);
}

}  // namespace

PathTable::PathTable(const Graph& graph, const PathOptions& options)
    : graph_(graph), origins_(graph.nodes().size()) {
    const std::vector<PathType> types = types_that_occur();
    for (const int cpu : graph.cpus()) grow(cpu, types);
    for (const int gpu : graph.gpus()) grow(gpu, types);
    detour_gpus(options);
    detour_nets();
}

PathType PathTable::step_type(int link, int c2c_cpu) const {
    const Link& step = graph_.link(link);
    const NodeType from = graph_.node(step.from).type;
    const NodeType to = graph_.node(step.to).type;
    switch (step.type) {
        case LinkType::kLocal:
        case LinkType::kNet:
            return PathType::kLoc;
        case LinkType::kNvLink:
            return PathType::kNvl;
        case LinkType::kC2c:
            return PathType::kC2c;
        case LinkType::kSys:
            return PathType::kSys;
        case LinkType::kPci:
            break;
    }
    if (step.from == c2c_cpu) return PathType::kP2c;
    if (from == NodeType::kCpu || to == NodeType::kCpu) return PathType::kPhb;
    return from == NodeType::kPci && to == NodeType::kPci ? PathType::kPxb : PathType::kPix;
}

std::vector<PathType> PathTable::types_that_occur() const {
    std::array<bool, static_cast<std::size_t>(PathType::kDis)> occurs{};
    occurs[at(static_cast<int>(PathType::kLoc))] = true;
    for (int link = 0; std::cmp_less(link, graph_.links().size()); ++link) {
        const PathType type = step_type(link, -1);
        occurs[at(static_cast<int>(type))] = true;
        if (type == PathType::kC2c) occurs[at(static_cast<int>(PathType::kP2c))] = true;
    }
    std::vector<PathType> types;
    for (std::size_t i = 0; i < occurs.size(); ++i)
        if (occurs[i]) types.push_back(static_cast<PathType>(i));
    return types;
}

void PathTable::grow(int source, const std::vector<PathType>& types) {
    PathOrigin& origin = origins_[at(source)];
    origin.tree_of.assign(graph_.nodes().size(), -1);
    for (const PathType type : types) {
        Tree tree = widest(source, type);
        bool is_needed = false;
        for (std::size_t node = 0; node < tree.steps.size(); ++node) {
            if (origin.tree_of[node] >= 0 || tree.steps[node].bandwidth <= 0) continue;
            origin.tree_of[node] = static_cast<int>(origin.trees.size());
            is_needed = true;
        }
        if (is_needed) origin.trees.push_back(std::move(tree));
    }
}

/// Computes the widest paths by Dijkstra's algorithm, over links whose type is within the limit.
PathTable::Tree PathTable::widest(int source, PathType limit) const {
    using Entry = std::tuple<double, int, int>;  // bandwidth, -hops, -node
    Tree tree{.type = limit, .steps = std::vector<PathStep>(graph_.nodes().size())};
    tree.steps[at(source)].bandwidth = std::numeric_limits<double>::infinity();
    int c2c_cpu = -1;
    for (const int link : graph_.links_from(source))
        if (graph_.link(link).type == LinkType::kC2c) c2c_cpu = graph_.link(link).to;

    std::priority_queue<Entry> queue;
    queue.emplace(tree.steps[at(source)].bandwidth, 0, -source);
    while (!queue.empty()) {
        const auto [bandwidth, depth, key] = queue.top();
        queue.pop();
        const PathStep here = tree.steps[at(-key)];
        if (bandwidth < here.bandwidth || -depth > here.hops) continue;
        if (-key != source && !may_be_crossed(graph_.node(-key).type)) continue;
        for (const int link : graph_.links_from(-key)) {
            if (step_type(link, c2c_cpu) > limit) continue;
            const Link& next = graph_.link(link);
            const double wide = std::min(here.bandwidth, next.bandwidth);
            PathStep& there = tree.steps[at(next.to)];
            if (std::pair(wide, -here.hops - 1) <= std::pair(there.bandwidth, -there.hops))
                continue;
            there = {.bandwidth = wide, .link = link, .hops = here.hops + 1};
            queue.emplace(wide, -there.hops, -next.to);
        }
    }
    return tree;
}

Path PathTable::direct(int from, int to) const {
    if (!is_source(from)) return is_source(to) ? direct(to, from) : Path{};
    const PathOrigin& origin = origins_[at(from)];
    if (origin.tree_of[at(to)] < 0) return {};
    const Tree& tree = origin.trees[at(origin.tree_of[at(to)])];
    const PathStep& step = tree.steps[at(to)];
    if (from == to) return {.type = PathType::kLoc, .bandwidth = step.bandwidth, .hops = 0};
    return {.type = tree.type, .bandwidth = step.bandwidth, .hops = step.hops};
}

int PathTable::local_cpu(int node) const {
    int best = -1;
    for (const int cpu : graph_.cpus())
        if (best < 0 || is_better(direct(node, cpu), direct(node, best))) best = cpu;
    return best;
}

void PathTable::detour_gpus(const PathOptions& options) {
    for (const int from : graph_.gpus()) {
        const int cpu = options.peer_to_peer ? -1 : local_cpu(from);
        for (const int to : graph_.gpus()) {
            if (from == to) continue;
            if (options.peer_to_peer)
                detour_over_gpu(from, to);
            else
                via_[{from, to}] = cpu;
        }
    }
}

void PathTable::detour_over_gpu(int from, int to) {
    if (direct(from, to).type <= PathType::kNvb) return;
    Path best;
    for (const int link : graph_.links_from(from)) {
        const Link& first = graph_.link(link);
        if (first.type != LinkType::kNvLink || graph_.node(first.to).type != NodeType::kGpu)
            continue;
        const Path rest = direct(first.to, to);
        if (rest.type != PathType::kNvl) continue;
        const Path path = joined(direct(from, first.to), rest, PathType::kNvb);
        if (!is_better(path, best)) continue;
        best = path;
        via_[{from, to}] = first.to;
    }
}

void PathTable::detour_nets() {
    for (const int gpu : graph_.gpus()) {
        const int cpu = local_cpu(gpu);
        for (const int net : graph_.nets()) {
            const bool is_direct = graph_.node(gpu).gdr && graph_.node(net).gdr;
            if (!is_direct && direct(gpu, net).type < PathType::kPhb) via_[{gpu, net}] = cpu;
            if (graph_.node(net).gdr) detour_over_peer(gpu, net);
        }
    }
}

/// Tries a detour over a peer. The peer's process uses the NIC and shares memory with ours: both
/// are on the NIC's host.
void PathTable::detour_over_peer(int gpu, int net) {
    const int host = graph_.node(net).host;
    if (graph_.node(gpu).host != host || path(gpu, net).type <= PathType::kPxn) return;
    Path best;
    for (const int peer : graph_.gpus()) {
        if (peer == gpu || graph_.node(peer).host != host) continue;
        if (!graph_.node(peer).gdr || direct(peer, net).type > PathType::kP2c) continue;
        if (direct(gpu, peer).type != PathType::kNvl || via(gpu, peer) >= 0) continue;
        const Path path = joined(direct(gpu, peer), direct(peer, net), PathType::kPxn);
        if (!is_better(path, best)) continue;
        best = path;
        via_[{gpu, net}] = peer;
    }
}

int PathTable::via(int from, int to) const {
    auto found = via_.find({from, to});
    if (found == via_.end() && graph_.node(from).type == NodeType::kNet)
        found = via_.find({to, from});
    return found == via_.end() ? -1 : found->second;
}

Path PathTable::path(int from, int to) const {
    const int between = via(from, to);
    if (between < 0) return direct(from, to);
    const bool is_over_gpu = graph_.node(between).type == NodeType::kGpu;
    const bool is_to_gpu =
        graph_.node(from).type == NodeType::kGpu && graph_.node(to).type == NodeType::kGpu;
    const PathType least = !is_over_gpu ? PathType::kPhb
                           : is_to_gpu  ? PathType::kNvb
                                        : PathType::kPxn;
    return joined(direct(from, between), direct(between, to), least);
}

void PathTable::append_direct(int from, int to, std::vector<int>& links) const {
    const bool is_forward = is_source(from);
    const int source = is_forward ? from : to;
    int node = is_forward ? to : from;
    if (source == node || direct(from, to).type == PathType::kDis) return;
    const PathOrigin& origin = origins_[at(source)];
    const Tree& tree = origin.trees[at(origin.tree_of[at(node)])];
    const std::size_t start = links.size();
    for (; node != source; node = graph_.link(tree.steps[at(node)].link).from) {
        const int link = tree.steps[at(node)].link;
        links.push_back(is_forward ? link : Graph::reverse(link));
    }
    if (is_forward) std::reverse(links.begin() + static_cast<std::ptrdiff_t>(start), links.end());
}

std::vector<int> PathTable::links(int from, int to) const {
    std::vector<int> links;
    const int between = via(from, to);
    if (between < 0) {
        append_direct(from, to, links);
        return links;
    }
    append_direct(from, between, links);
    append_direct(between, to, links);
    return links;
}

std::vector<Charge> PathTable::charges(int from, int to) const {
    constexpr double kHostBridge = 1.2;
    constexpr double kReadBack = 0.125;
    constexpr int kAmpere = 80;
    const std::vector<int> along = links(from, to);
    const auto is_gpu = [this](int node) { return graph_.node(node).type == NodeType::kGpu; };
    const bool crosses_intel = std::any_of(along.begin(), along.end(), [this](int link) {
        return graph_.node(graph_.link(link).to).intel;
    });
    const bool is_costly =
        crosses_intel && is_gpu(from) && is_gpu(to) && path(from, to).type == PathType::kPhb;
    std::vector<Charge> charges;
    for (const int id : along) {
        const Link& link = graph_.link(id);
        charges.push_back({id, is_costly && link.type == LinkType::kPci ? kHostBridge : 1});
        if (is_gpu(link.to) && !is_gpu(link.from) && link.type == LinkType::kPci &&
            graph_.node(link.to).sm < kAmpere)
            charges.push_back({Graph::reverse(id), kReadBack});
    }
    return charges;
}

}  // namespace pccl::topo
