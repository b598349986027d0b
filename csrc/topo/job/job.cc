// SPDX-License-Identifier: Apache-2.0
#include "csrc/topo/job/job.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/digest.h"
#include "csrc/base/text/text.h"
#include "csrc/topo/detect/detect.h"
#include "csrc/topo/machine/rates.h"
#include "csrc/topo/search/process_plan.h"

namespace pccl::topo {
namespace {

std::vector<int> usable_ports(const Graph& graph) {
    std::vector<int> ports;
    for (int net = 0; std::cmp_less(net, graph.nets().size()); ++net)
        if (graph.node(graph.nets()[at(net)]).usable) ports.push_back(net);
    return ports;
}

double width_of(const Graph& graph, int net) {
    return graph.link(graph.links_from(graph.nets()[at(net)]).front()).bandwidth;
}

/// Returns "8 ports of 50 GB/s".
std::string ports_text(const HostTopology& host) {
    const Graph& graph = host.topology.graph();
    const std::vector<int> ports = usable_ports(graph);
    double narrowest = std::numeric_limits<double>::infinity();
    for (const int port : ports) narrowest = std::min(narrowest, width_of(graph, port));
    if (ports.empty()) return "no port";
    return concat(ports.size(), " ports of ", narrowest, " GB/s or more");
}

void sort_ranks(HostTopology& host) {
    std::vector<std::pair<Rank, int>> placed;
    placed.reserve(host.ranks.size());
    for (std::size_t place = 0; place < host.ranks.size(); ++place)
        placed.emplace_back(host.ranks[place], host.numa_of(place));
    std::sort(placed.begin(), placed.end());
    host.numa.resize(placed.size());
    for (std::size_t place = 0; place < placed.size(); ++place)
        std::tie(host.ranks[place], host.numa[place]) = placed[place];
}

/// Returns whether ranks and GPUs of the host correspond one to one.
bool is_one_rank_a_gpu(const HostTopology& host) {
    std::vector<Rank> of_gpus;
    const Graph& graph = host.topology.graph();
    for (const int gpu : graph.gpus()) of_gpus.push_back(graph.node(gpu).rank);
    std::sort(of_gpus.begin(), of_gpus.end());
    return !of_gpus.empty() && of_gpus == host.ranks;
}

}  // namespace

int network_port(const HostTopology& host) {
    const Graph& graph = host.topology.graph();
    for (int net = 0; std::cmp_less(net, graph.nets().size()); ++net)
        if (graph.node(graph.nets()[at(net)]).label == host.network.interface) return net;
    return kNoNet;
}

Result<JobTopology> JobTopology::make(std::vector<HostTopology> hosts) {
    if (hosts.empty()) return Status::invalid_argument("a job needs a host");
    for (HostTopology& host : hosts) sort_ranks(host);
    std::sort(hosts.begin(), hosts.end(), [](const HostTopology& a, const HostTopology& b) {
        return std::tie(a.ranks, a.name) < std::tie(b.ranks, b.name);
    });
    JobTopology job;
    job.hosts_ = std::move(hosts);
    PCCL_TRY(job.place_ranks());
    job.compare_hosts();
    job.lay_rails();
    return job;
}

Status JobTopology::place_ranks() {
    for (std::size_t host = 0; host < hosts_.size(); ++host)
        for (const Rank rank : hosts_[host].ranks) {
            const auto [known, is_new] = host_of_.emplace(rank, static_cast<int>(host));
            if (!is_new)
                return Status::invalid_argument(concat("rank ", rank, " is on two hosts, ",
                                                       hosts_[at(known->second)].name, " and ",
                                                       hosts_[host].name));
        }
    return Status::ok();
}

void JobTopology::compare_hosts() {
    const HostTopology& first = hosts_.front();
    for (const HostTopology& host : hosts_) {
        for (Warning warning : host.topology.warnings()) {
            if (warnings_.size() >= kMostWarnings) break;
            warning.subject = concat(host.name, ": ", warning.subject);
            warnings_.push_back(std::move(warning));
        }
        if (ports_text(host) != ports_text(first))
            warnings_.push_back(
                {"nic_sets_differ", host.name,
                 concat("has ", ports_text(host), ", and ", first.name, " has ", ports_text(first)),
                 "only the rails that all hosts have are counted"});
        else if (host.topology.digest() != first.topology.digest())
            warnings_.push_back(
                {"hosts_differ", host.name,
                 concat("is another machine than ", first.name, ": each keeps its own channels"),
                 ""});
    }
}

void JobTopology::lay_rails() {
    std::vector<std::vector<int>> ports;
    std::size_t common = std::numeric_limits<std::size_t>::max();
    for (const HostTopology& host : hosts_) {
        ports.push_back(usable_ports(host.topology.graph()));
        common = std::min(common, ports.back().size());
    }
    for (std::size_t rail = 0; rail < common; ++rail) {
        RailOfJob found{.ports = {}, .bandwidth = std::numeric_limits<double>::infinity()};
        for (std::size_t host = 0; host < hosts_.size(); ++host) {
            found.ports.push_back(ports[host][rail]);
            found.bandwidth = std::min(found.bandwidth,
                                       width_of(hosts_[host].topology.graph(), ports[host][rail]));
        }
        rails_.push_back(std::move(found));
    }
}

int JobTopology::host_of(Rank rank) const {
    const auto found = host_of_.find(rank);
    return found == host_of_.end() ? -1 : found->second;
}

std::optional<LinkTimes> JobTopology::measured_between(int from, int to) const {
    const HostTopology& a = hosts_[at(from)];
    const HostTopology& b = hosts_[at(to)];
    const auto there = a.calibration.network(a.network.interface, b.name);
    const auto back = b.calibration.network(b.network.interface, a.name);
    if (!there || !back) return there ? there : back;
    return LinkTimes{.latency = std::max(there->latency, back->latency),
                     .bandwidth = std::min(there->bandwidth, back->bandwidth)};
}

std::optional<double> JobTopology::measured_bandwidth(int host) const {
    std::optional<double> most;
    for (int other = 0; std::cmp_less(other, hosts_.size()); ++other)
        if (const auto times = measured_between(host, other); times && other != host)
            most = std::max(most.value_or(0), times->bandwidth);
    return most;
}

Provenance JobTopology::network_provenance(int host) const {
    const bool is_measured = measured_bandwidth(host) || narrow_bandwidth(host);
    return is_measured ? Provenance::kMeasured : hosts_[at(host)].network.provenance;
}

std::optional<double> JobTopology::narrow_bandwidth(int host) const {
    const HostTopology& end = hosts_[at(host)];
    if (!end.way || !end.way->is_narrow) return std::nullopt;
    return std::min(1e-9 / end.way->byte, declared_bandwidth(end));
}

double JobTopology::network_bandwidth(int host) const {
    if (const auto measured = measured_bandwidth(host)) return *measured;
    return narrow_bandwidth(host).value_or(declared_bandwidth(hosts_[at(host)]));
}

double JobTopology::declared_bandwidth(const HostTopology& end) {
    const Graph& graph = end.topology.graph();
    if (const int port = network_port(end); port != kNoNet) return width_of(graph, port);
    const std::vector<int> ports = usable_ports(graph);
    if (end.network.interface.empty() && !ports.empty()) return width_of(graph, ports.front());
    Net net;
    if (end.network.megabits > 0) net.speed = {end.network.megabits, Source::kSysfs};
    return net_rate(net);
}

HostLink JobTopology::link_between(int from, int to) const {
    const std::string& subnet = hosts_[at(from)].network.subnet;
    const auto measured = measured_between(from, to);
    return {.from = from,
            .to = to,
            .bandwidth = measured ? measured->bandwidth
                                  : std::min(network_bandwidth(from), network_bandwidth(to)),
            .latency = measured ? measured->latency : 0,
            .same_subnet = !subnet.empty() && subnet == hosts_[at(to)].network.subnet};
}

int JobTopology::ring_count() const {
    return std::clamp(static_cast<int>(rails_.size()), 1, kMostRings);
}

std::vector<int> JobTopology::hosts_by_subnet() const {
    std::map<std::string, std::size_t> first;
    for (std::size_t host = 0; host < hosts_.size(); ++host)
        first.emplace(hosts_[host].network.subnet, host);
    std::vector<int> sorted(hosts_.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    std::stable_sort(sorted.begin(), sorted.end(), [&](int a, int b) {
        return first.at(hosts_[at(a)].network.subnet) < first.at(hosts_[at(b)].network.subnet);
    });
    return sorted;
}

Result<std::vector<Rank>> JobTopology::order() const {
    std::vector<Rank> ranks;
    for (const int host : hosts_by_subnet()) {
        PCCL_ASSIGN_OR_RETURN(const std::vector<Rank> own, order_on(hosts_[at(host)]));
        ranks.insert(ranks.end(), own.begin(), own.end());
    }
    return ranks;
}

Result<std::vector<Rank>> JobTopology::order_on(const HostTopology& host) const {
    if (is_one_rank_a_gpu(host)) {
        const SearchOptions options{.nodes = static_cast<int>(hosts_.size())};
        PCCL_ASSIGN_OR_RETURN(const ChannelPlan ring, plan(host.topology, options));
        const Graph& graph = host.topology.graph();
        std::vector<Rank> ranks;
        for (const int gpu : ring.channels.front().order)
            ranks.push_back(graph.node(graph.gpus()[at(gpu)]).rank);
        return ranks;
    }
    std::vector<std::size_t> places(host.ranks.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
        return host.numa_of(a) < host.numa_of(b);
    });
    std::vector<Rank> ranks;
    ranks.reserve(places.size());
    for (const std::size_t place : places) ranks.push_back(host.ranks[place]);
    return ranks;
}

bool JobTopology::is_uniform() const {
    return std::all_of(hosts_.begin(), hosts_.end(), [this](const HostTopology& host) {
        return host.topology.digest() == hosts_.front().topology.digest();
    });
}

std::string JobTopology::digest() const {
    Digest digest;
    for (const HostTopology& host : hosts_) {
        digest.add(host.topology.digest());
        for (std::size_t place = 0; place < host.ranks.size(); ++place)
            digest.add(concat(host.ranks[place], "@", host.numa_of(place), ","));
        digest.add(concat(host.network.interface, host.network.subnet, host.network.megabits,
                          host.calibration.text(), host.way ? host.way->text() : "", ";"));
    }
    return digest.text();
}

Result<std::vector<ChannelPlan>> JobTopology::search(SearchOptions options) const {
    options.nodes = static_cast<int>(hosts_.size());
    std::map<std::string, ChannelPlan> known;
    std::vector<ChannelPlan> plans;
    for (const HostTopology& host : hosts_) {
        const std::string key = host.topology.digest();
        if (known.count(key) == 0) {
            auto plan = topo::search(host.topology, options);
            if (!plan.is_ok()) return plan.status().with_context(host.name);
            known.emplace(key, *std::move(plan));
        }
        plans.push_back(known.at(key));
    }
    return plans;
}

std::string digest_of(const std::vector<ChannelPlan>& plans) {
    Digest digest;
    for (const ChannelPlan& plan : plans) {
        digest.add(concat(to_string(plan.pattern), plan.nodes, ";"));
        for (const Channel& channel : plan.channels) {
            digest.add(concat(channel.bandwidth, ":", channel.net_in, ":", channel.net_out));
            for (const int gpu : channel.order) digest.add(concat(",", gpu));
        }
    }
    return digest.text();
}

Status check_agreement(const std::vector<std::string>& digests) {
    for (std::size_t rank = 1; rank < digests.size(); ++rank)
        if (digests[rank] != digests.front())
            return Status::mismatch(
                static_cast<Rank>(rank),
                concat("rank ", rank, " found other channels than rank 0: digests ", digests[rank],
                       " and ", digests.front(),
                       "; do both run the same PCCL, with the same files?"));
    return Status::ok();
}

}  // namespace pccl::topo
