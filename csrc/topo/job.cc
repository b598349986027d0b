#include "csrc/topo/job.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/text.h"
#include "csrc/topo/digest.h"
#include "csrc/topo/machine_xml.h"

namespace pccl::topo {
namespace {

constexpr std::uint32_t kFormat = 0x50'54'50'31;  // "PTP1"
constexpr std::uint32_t kMostRanks = 1U << 16U;
constexpr std::size_t kLongestName = 256;

std::size_t at(int id) { return static_cast<std::size_t>(id); }

std::vector<int> usable_ports(const Graph& graph) {
    std::vector<int> ports;
    for (int net = 0; std::cmp_less(net, graph.nets().size()); ++net)
        if (graph.node(graph.nets()[at(net)]).usable) ports.push_back(net);
    return ports;
}

double width_of(const Graph& graph, int net) {
    return graph.link(graph.links_from(graph.nets()[at(net)]).front()).bandwidth;
}

/// "8 ports of 50 GB/s".
std::string ports_text(const HostTopology& host) {
    const Graph& graph = host.topology.graph();
    const std::vector<int> ports = usable_ports(graph);
    double narrowest = std::numeric_limits<double>::infinity();
    for (const int port : ports) narrowest = std::min(narrowest, width_of(graph, port));
    if (ports.empty()) return "no port";
    return concat(ports.size(), " ports of ", narrowest, " GB/s or more");
}

}  // namespace

std::string encode(const HostTopology& host) {
    const Assumptions& assume = host.topology.assumptions();
    ByteWriter out;
    out.u32(kFormat);
    out.text(host.name.substr(0, kLongestName));
    out.u32(static_cast<std::uint32_t>(host.ranks.size()));
    for (const Rank rank : host.ranks) out.u32(static_cast<std::uint32_t>(rank));
    out.u8(assume.peer_to_peer ? 1 : 0);
    out.u8(assume.multi_node_nvlink ? 1 : 0);
    out.text(host.topology.to_xml());
    return out.take();
}

Result<HostTopology> decode_host(std::string_view blob) {
    ByteReader in(blob);
    std::uint32_t format = 0;
    std::uint32_t count = 0;
    std::uint8_t peer_to_peer = 0;
    std::uint8_t multi_node = 0;
    std::string name;
    std::string xml;
    PCCL_TRY(in.u32(format));
    if (format != kFormat) return Status::invalid_argument("this is no description of a host");
    PCCL_TRY(in.text(name, kLongestName));
    PCCL_TRY(in.u32(count));
    if (count > kMostRanks)
        return Status::invalid_argument(concat(count, " ranks on one host are too many"));
    std::vector<Rank> ranks;
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t rank = 0;
        PCCL_TRY(in.u32(rank));
        if (rank > static_cast<std::uint32_t>(std::numeric_limits<Rank>::max()))
            return Status::invalid_argument(concat(rank, " is no rank"));
        ranks.push_back(static_cast<Rank>(rank));
    }
    PCCL_TRY(in.u8(peer_to_peer));
    PCCL_TRY(in.u8(multi_node));
    PCCL_TRY(in.text(xml, XmlLimits::kBytes));
    PCCL_TRY(in.finish());
    LoadOptions options;
    options.assume.peer_to_peer = peer_to_peer != 0;
    options.assume.multi_node_nvlink = multi_node != 0;
    PCCL_ASSIGN_OR_RETURN(Topology topology, Topology::parse(xml, name, options));
    return HostTopology{std::move(name), std::move(ranks), std::move(topology)};
}

Result<JobTopology> JobTopology::make(std::vector<HostTopology> hosts) {
    if (hosts.empty()) return Status::invalid_argument("a job needs a host");
    std::map<Rank, std::string> seen;
    for (HostTopology& host : hosts) {
        std::sort(host.ranks.begin(), host.ranks.end());
        for (const Rank rank : host.ranks) {
            const auto [other, is_new] = seen.emplace(rank, host.name);
            if (!is_new)
                return Status::invalid_argument(
                    concat("rank ", rank, " is on two hosts, ", other->second, " and ", host.name));
        }
    }
    std::sort(hosts.begin(), hosts.end(), [](const HostTopology& a, const HostTopology& b) {
        return std::pair(a.ranks, a.name) < std::pair(b.ranks, b.name);
    });
    JobTopology job;
    job.hosts_ = std::move(hosts);
    job.compare_hosts();
    job.lay_rails();
    return job;
}

void JobTopology::compare_hosts() {
    const HostTopology& first = hosts_.front();
    for (const HostTopology& host : hosts_) {
        for (Warning warning : host.topology.warnings()) {
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

double JobTopology::bandwidth_between_hosts() const {
    double sum = 0;
    for (const RailOfJob& rail : rails_) sum += rail.bandwidth;
    return sum;
}

int JobTopology::host_of(Rank rank) const {
    for (std::size_t host = 0; host < hosts_.size(); ++host)
        if (std::binary_search(hosts_[host].ranks.begin(), hosts_[host].ranks.end(), rank))
            return static_cast<int>(host);
    return -1;
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
        for (const Rank rank : host.ranks) digest.add(concat(rank, ","));
    }
    return digest.text();
}

Result<std::vector<Plan>> JobTopology::search(SearchOptions options) const {
    options.nodes = static_cast<int>(hosts_.size());
    std::map<std::string, Plan> known;
    std::vector<Plan> plans;
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

std::string digest_of(const std::vector<Plan>& plans) {
    Digest digest;
    for (const Plan& plan : plans) {
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
