// SPDX-License-Identifier: Apache-2.0
#include "csrc/bootstrap/locality.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>

#include "csrc/base/config.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/cgroup.h"
#include "csrc/sys/host.h"
#include "csrc/sys/socket/interfaces.h"
#include "csrc/sys/sysfs/sysfs.h"
#include "csrc/topo/detect/detect.h"
#include "csrc/topo/search/process_plan.h"
#include "csrc/topo/xml/xml_text.h"
#include "csrc/transport/shm/shm_transport.h"

namespace pccl::bootstrap {
namespace {

/// Parses "0000ffff,ffffffff": groups of 32 cores, the highest first.
sys::CoreSet cores_of_mask(std::string_view mask) {
    sys::CoreSet cores;
    for (std::size_t base = 0; !mask.empty() && base < cores.size(); base += 32) {
        const std::size_t comma = mask.find_last_of(',');
        const std::string_view group =
            comma == std::string_view::npos ? mask : mask.substr(comma + 1);
        std::uint32_t bits = 0;
        std::from_chars(group.data(), group.data() + group.size(), bits, 16);
        for (; bits != 0; bits &= bits - 1)
            cores[base + static_cast<std::size_t>(std::countr_zero(bits))] = true;
        mask = comma == std::string_view::npos ? std::string_view() : mask.substr(0, comma);
    }
    return cores;
}

/// Returns -1 where this thread may run on cores of several nodes.
int own_numa_node(const sys::Sysfs& sysfs) {
    const sys::CoreSet own = sys::usable_cores();
    int found = -1;
    for (const int node : sysfs.numa_nodes()) {
        if ((own & cores_of_mask(sysfs.cores_of(node))).none()) continue;
        if (found >= 0) return -1;
        found = node;
    }
    return found;
}

/// Returns the interface with the address that peers try first.
topo::Network own_network(const transport::PeerAddress& own) {
    const auto interfaces = sys::list_interfaces();
    const auto first = own.first_of(transport::TransportKind::kTcp);
    if (!interfaces.is_ok() || !first.is_ok()) return {};
    const auto address = sys::Address::parse(*first);
    const auto chosen = std::ranges::find_if(*interfaces, [&address](const sys::Interface& i) {
        return address.is_ok() && i.address.same_ip(*address);
    });
    if (chosen == interfaces->end()) return {};
    const int megabits = sys::megabits_of(chosen->name);
    return {.interface = chosen->name,
            .subnet = sys::subnet_of(*chosen),
            .megabits = megabits,
            .provenance = megabits > 0 ? topo::Provenance::kMeasured : topo::Provenance::kAssumed};
}

/// Sets the speed from this host's own topology.
void look_up_speed(topo::HostTopology& host) {
    for (const topo::Cpu& cpu : host.topology.machine().cpus) {
        topo::Machine one{.name = {}, .cpus = {cpu}};
        const auto look = [&](const std::vector<topo::Nic>& nics) {
            for (const topo::Nic& nic : nics)
                for (const topo::Net& net : nic.nets) {
                    if (net.name.value_or("") != host.network.interface) continue;
                    host.network.megabits = net.speed.value_or(-1);
                    host.network.provenance = provenance(net.speed.source());
                }
        };
        look(cpu.nics);
        visit_devices(one, [&](topo::Cpu&, topo::PciDevice& device) { look(device.nics); });
    }
}

/// Writes to PCCL_GRAPH_DUMP_FILE. Does nothing for a machine without GPUs, which has no plan.
Status dump_plans(const topo::Topology& topology, std::size_t hosts) {
    if (process_config().graph_dump_file.empty()) return Status::ok();
    for (const topo::Pattern pattern : {topo::Pattern::kRing, topo::Pattern::kTree}) {
        const auto found =
            topo::plan(topology, {.pattern = pattern, .nodes = static_cast<int>(hosts)});
        if (found.status().code() == StatusCode::kUnsupported) return Status::ok();
        PCCL_TRY(found.status());
    }
    return Status::ok();
}

bool names_ranks(const topo::Graph& graph) {
    return std::ranges::any_of(graph.gpus(), [&](int gpu) { return graph.node(gpu).rank >= 0; });
}

/// Assigns ranks to GPUs, which several ranks may share. Ranks in a topology file belong to another
/// job and are ignored.
Result<topo::Topology> with_ranks(const topo::Topology& topology, const Roster& roster,
                                  const std::vector<Rank>& ranks) {
    const auto gpu_of = [&](Rank rank) -> const std::string& {
        return roster.endpoints[static_cast<std::size_t>(rank)].gpu;
    };
    const auto has_none = [&](Rank rank) { return gpu_of(rank).empty(); };
    if (std::ranges::all_of(ranks, has_none) && !names_ranks(topology.graph())) return topology;
    topo::Machine machine = topology.machine();
    visit_devices(machine, [&](topo::Cpu&, topo::PciDevice& device) {
        if (device.gpus.empty()) return;
        topo::Gpu model = device.gpus.front();
        model.rank = {};
        std::vector<topo::Gpu> used;
        for (const Rank rank : ranks)
            if (gpu_of(rank) == device.bus_id.value_or("")) {
                used.push_back(model);
                used.back().rank = {rank, topo::Source::kUserFile};
            }
        if (used.empty()) used.push_back(std::move(model));
        device.gpus = std::move(used);
    });
    topo::LoadOptions options;
    options.assume = topology.assumptions();
    PCCL_ASSIGN_OR_RETURN(topo::Topology placed, topo::Topology::make(std::move(machine), options));
    // The graph was repaired before, so earlier warnings still apply; only those of shared GPUs are
    // new.
    topo::Warnings warnings = topology.warnings();
    for (const topo::Warning& warning : placed.warnings())
        if (warning.name == "shared_gpu") warnings.push_back(warning);
    return placed.with(std::move(warnings));
}

bool has_memory(const Endpoint& endpoint) {
    return endpoint.address.links.contains(transport::TransportKind::kShm);
}

}  // namespace

Result<Locality> Locality::of_process() {
    const sys::Sysfs sysfs;
    auto machine = sys::host_identity();
    if (machine.status().code() == StatusCode::kResourceExhausted) return machine.status();
    Locality own{.machine = machine.is_ok() ? *std::move(machine) : sys::host_name(),
                 .host = sys::host_name(),
                 .numa = own_numa_node(sysfs)};
    PCCL_TRY(sysfs.shortage());
    return own;
}

Result<std::string> bus_id_of(const std::string& gpu) {
    auto id = topo::parse_bus_id(gpu);
    if (id) return *std::move(id);
    return Status::invalid_argument(
        concat("gpu ", topo::shown(gpu), " is no bus id: write it as 0000:0d:00.0"));
}

Result<topo::Topology> topology_of(const Locality& locality) {
    if (locality.topology) return *locality.topology;
    static std::mutex mutex;
    static std::optional<topo::Topology> detected;
    const std::lock_guard lock(mutex);
    if (!detected) {
        PCCL_ASSIGN_OR_RETURN(detected, topo::detect({}));
    }
    return *detected;
}

Result<topo::HostTopology> host_of_ranks(const Locality& locality, const Roster& roster,
                                         const std::vector<Rank>& ranks) {
    PCCL_ASSIGN_OR_RETURN(const topo::Topology machine, topology_of(locality));
    PCCL_TRY(dump_plans(machine, ranks_by_host(roster).size()));
    PCCL_ASSIGN_OR_RETURN(topo::Topology placed, with_ranks(machine, roster, ranks));
    topo::HostTopology host{.name = locality.host, .ranks = ranks, .topology = std::move(placed)};
    for (const Rank rank : ranks)
        host.numa.push_back(roster.endpoints[static_cast<std::size_t>(rank)].numa);
    host.network = locality.network;
    if (host.network.interface.empty()) {
        const Rank own = ranks.front();
        host.network = own_network(roster.endpoints[static_cast<std::size_t>(own)].address);
    }
    look_up_speed(host);
    host.calibration = topo::load_calibration(machine.digest());
    return host;
}

bool is_on_one_host(const Roster& roster) {
    const transport::PeerAddress& first = roster.endpoints.front().address;
    return std::ranges::all_of(roster.endpoints, [&first](const Endpoint& endpoint) {
        return has_memory(endpoint) &&
               may_share_memory(first.control, endpoint.address.control).is_ok();
    });
}

std::string why_memory_is_apart(const Roster& roster) {
    std::map<std::string, const Endpoint*> firsts;  // first rank of each host with the transport
    for (const Endpoint& endpoint : roster.endpoints) {
        if (!has_memory(endpoint)) continue;
        const Endpoint& first = *firsts.emplace(endpoint.machine, &endpoint).first->second;
        const Status shared = may_share_memory(first.address.control, endpoint.address.control);
        if (!shared.is_ok())
            return concat("ranks ", first.rank, " and ", endpoint.rank, " of host ", endpoint.host,
                          " share no memory, as rank ", first.rank, " finds: ", shared.message());
    }
    return {};
}

int ranks_beside(const Roster& roster, Rank rank) {
    const std::string& machine = roster.endpoints[static_cast<std::size_t>(rank)].machine;
    return static_cast<int>(std::ranges::count(roster.endpoints, machine, &Endpoint::machine));
}

namespace {

int share_of(int cores, int sharers) { return std::max(cores / std::max(sharers, 1), 1); }

}  // namespace

int usable_cores() {
    const auto cores = static_cast<double>(sys::usable_cores().count());
    return std::max(static_cast<int>(std::min(cores, sys::cpu_quota())), 1);
}

int core_sharers(const Roster& roster, Rank rank) {
    const Endpoint& own = roster.endpoints[static_cast<std::size_t>(rank)];
    const auto sharers = std::ranges::count_if(roster.endpoints, [&](const Endpoint& other) {
        return other.core_set == own.core_set && other.machine == own.machine;
    });
    return static_cast<int>(sharers);
}

int core_share(const Roster& roster, Rank rank) {
    return share_of(roster.endpoints[static_cast<std::size_t>(rank)].cores,
                    core_sharers(roster, rank));
}

int least_threads(const Roster& roster) {
    std::map<std::pair<std::uint64_t, std::string_view>, int> sharers;
    for (const Endpoint& endpoint : roster.endpoints)
        ++sharers[{endpoint.core_set, endpoint.machine}];
    int least = std::numeric_limits<int>::max();
    for (const Endpoint& endpoint : roster.endpoints) {
        const int share = share_of(endpoint.cores, sharers[{endpoint.core_set, endpoint.machine}]);
        least = std::min(least, endpoint.tcp_threads >= 0 ? endpoint.tcp_threads + 1 : share);
    }
    return least;
}

std::vector<std::vector<Rank>> ranks_by_host(const Roster& roster) {
    std::vector<std::vector<Rank>> hosts;
    std::map<std::string, std::size_t> known;
    for (const Endpoint& endpoint : roster.endpoints) {
        const auto [host, is_new] = known.emplace(endpoint.machine, hosts.size());
        if (is_new) hosts.emplace_back();
        hosts[host->second].push_back(endpoint.rank);
    }
    return hosts;
}

}  // namespace pccl::bootstrap
