// SPDX-License-Identifier: Apache-2.0

// Encoding of hosts and jobs as bytes.

#include <limits>
#include <map>
#include <utility>

#include "csrc/base/bytes.h"
#include "csrc/base/text/text.h"
#include "csrc/topo/job/job.h"
#include "csrc/topo/xml/machine_xml.h"
#include "csrc/topo/xml/xml_text.h"

namespace pccl::topo {
namespace {

constexpr std::uint32_t kHostFormat = 0x50'54'50'33;  // "PTP3"
constexpr std::uint32_t kJobFormat = 0x50'54'4A'32;   // "PTJ2"
constexpr std::uint32_t kMostRanks = 1U << 16U;
constexpr std::uint32_t kMostWarnings = 4096;
constexpr std::size_t kLongestName = 256;
constexpr std::size_t kLongestWarning = 4096;
constexpr int kMostMegabits = 100'000'000;

void write(ByteWriter& out, const Topology& topology) {
    out.u8(topology.assumptions().peer_to_peer ? 1 : 0);
    out.u8(topology.assumptions().multi_node_nvlink ? 1 : 0);
    out.text(topology.to_xml());
    const std::size_t count = std::min<std::size_t>(topology.warnings().size(), kMostWarnings);
    out.u32(static_cast<std::uint32_t>(count));
    for (std::size_t i = 0; i < count; ++i) {
        const Warning& warning = topology.warnings()[i];
        for (const std::string* text :
             {&warning.name, &warning.subject, &warning.message, &warning.repair})
            out.text(text->substr(0, kLongestWarning));
    }
}

Status read_count(ByteReader& in, std::string_view what, std::uint32_t most, std::uint32_t& count) {
    PCCL_TRY(in.u32(count));
    if (count <= most) return Status::ok();
    return Status::invalid_argument(concat(count, " ", what, " are too many: at most ", most));
}

Result<Warnings> read_warnings(ByteReader& in) {
    std::uint32_t count = 0;
    PCCL_TRY(read_count(in, "warnings", kMostWarnings, count));
    Warnings warnings;
    for (std::uint32_t i = 0; i < count; ++i) {
        Warning warning;
        for (std::string* text :
             {&warning.name, &warning.subject, &warning.message, &warning.repair})
            PCCL_TRY(in.text(*text, kLongestWarning));
        warnings.push_back(std::move(warning));
    }
    return warnings;
}

Result<Topology> read_topology(ByteReader& in, std::string_view name) {
    std::uint8_t peer_to_peer = 0;
    std::uint8_t multi_node = 0;
    std::string xml;
    PCCL_TRY(in.u8(peer_to_peer));
    PCCL_TRY(in.u8(multi_node));
    PCCL_TRY(in.text(xml, XmlLimits::kBytes));
    PCCL_ASSIGN_OR_RETURN(Warnings warnings, read_warnings(in));
    LoadOptions options;
    options.assume.peer_to_peer = peer_to_peer != 0;
    options.assume.multi_node_nvlink = multi_node != 0;
    PCCL_ASSIGN_OR_RETURN(const Topology topology, Topology::parse(xml, name, options));
    return topology.with(std::move(warnings));
}

/// Writes all fields except the topology.
void write_rest(ByteWriter& out, const HostTopology& host) {
    out.text(host.name.substr(0, kLongestName));
    out.u32(static_cast<std::uint32_t>(host.ranks.size()));
    for (std::size_t place = 0; place < host.ranks.size(); ++place) {
        out.u32(static_cast<std::uint32_t>(host.ranks[place]));
        out.i64(host.numa_of(place));
    }
    out.text(host.network.interface.substr(0, kLongestName));
    out.text(host.network.subnet.substr(0, kLongestName));
    out.i64(host.network.megabits);
    out.u8(static_cast<std::uint8_t>(host.network.provenance));
    out.text(host.calibration.text());
    out.text(host.way ? host.way->text() : std::string());
}

Status read_ranks(ByteReader& in, HostTopology& host) {
    std::uint32_t count = 0;
    PCCL_TRY(read_count(in, "ranks on one host", kMostRanks, count));
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t rank = 0;
        std::int64_t numa = 0;
        PCCL_TRY(in.u32(rank));
        PCCL_TRY(in.i64(numa));
        if (rank > static_cast<std::uint32_t>(std::numeric_limits<Rank>::max()))
            return Status::invalid_argument(concat(rank, " is no rank"));
        if (numa < -1 || numa > std::numeric_limits<int>::max())
            return Status::invalid_argument(concat(numa, " is no NUMA node"));
        host.ranks.push_back(static_cast<Rank>(rank));
        host.numa.push_back(static_cast<int>(numa));
    }
    return Status::ok();
}

Status read_network(ByteReader& in, Network& network) {
    std::int64_t megabits = 0;
    std::uint8_t provenance = 0;
    PCCL_TRY(in.text(network.interface, kLongestName));
    PCCL_TRY(in.text(network.subnet, kLongestName));
    PCCL_TRY(in.i64(megabits));
    PCCL_TRY(in.u8(provenance));
    if (megabits < -1 || megabits > kMostMegabits ||
        provenance > static_cast<std::uint8_t>(Provenance::kAssumed))
        return Status::invalid_argument("a network that cannot be");
    network.megabits = static_cast<int>(megabits);
    network.provenance = static_cast<Provenance>(provenance);
    return Status::ok();
}

Status read_rest(ByteReader& in, HostTopology& host) {
    PCCL_TRY(in.text(host.name, kLongestName));
    PCCL_TRY(read_ranks(in, host));
    PCCL_TRY(read_network(in, host.network));
    std::string calibration;
    PCCL_TRY(in.text(calibration, Calibration::kMostBytes));
    PCCL_ASSIGN_OR_RETURN(host.calibration, Calibration::parse(calibration));
    std::string way;
    PCCL_TRY(in.text(way, HostWay::kMostBytes));
    if (way.empty()) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(host.way, HostWay::parse(way));
    return Status::ok();
}

Status check_format(ByteReader& in, std::uint32_t wanted, std::string_view what) {
    std::uint32_t format = 0;
    PCCL_TRY(in.u32(format));
    if (format == wanted) return Status::ok();
    return Status::invalid_argument(concat("this is no description of a ", what));
}

}  // namespace

std::string encode(const HostTopology& host) {
    ByteWriter out;
    out.u32(kHostFormat);
    write(out, host.topology);
    write_rest(out, host);
    return out.take();
}

Result<HostTopology> decode_host(std::string_view blob) {
    ByteReader in(blob);
    PCCL_TRY(check_format(in, kHostFormat, "host"));
    PCCL_ASSIGN_OR_RETURN(Topology topology, read_topology(in, "topology of a host"));
    HostTopology host{.name = {}, .ranks = {}, .topology = std::move(topology)};
    PCCL_TRY(read_rest(in, host));
    PCCL_TRY(in.finish());
    return host;
}

std::string encode(const JobTopology& job) {
    std::map<std::string, std::uint32_t> numbers;
    std::vector<std::uint32_t> machine_of;
    for (const HostTopology& host : job.hosts()) {
        ByteWriter machine;
        write(machine, host.topology);
        machine_of.push_back(
            numbers.emplace(machine.take(), static_cast<std::uint32_t>(numbers.size()))
                .first->second);
    }
    std::vector<const std::string*> machines(numbers.size());
    for (const auto& [bytes, number] : numbers) machines[number] = &bytes;
    ByteWriter out;
    out.u32(kJobFormat);
    out.u32(static_cast<std::uint32_t>(machines.size()));
    for (const std::string* machine : machines) out.raw(std::as_bytes(std::span(*machine)));
    out.u32(static_cast<std::uint32_t>(machine_of.size()));
    for (std::size_t host = 0; host < machine_of.size(); ++host) {
        out.u32(machine_of[host]);
        write_rest(out, job.hosts()[host]);
    }
    return out.take();
}

Result<JobTopology> decode_job(std::string_view blob) {
    ByteReader in(blob);
    PCCL_TRY(check_format(in, kJobFormat, "job"));
    std::uint32_t count = 0;
    PCCL_TRY(read_count(in, "machines", kMostRanks, count));
    std::vector<Topology> machines;
    for (std::uint32_t i = 0; i < count; ++i) {
        PCCL_ASSIGN_OR_RETURN(Topology machine, read_topology(in, concat("machine ", i)));
        machines.push_back(std::move(machine));
    }
    PCCL_TRY(read_count(in, "hosts", kMostRanks, count));
    std::vector<HostTopology> hosts;
    for (std::uint32_t i = 0; i < count; ++i) {
        std::uint32_t machine = 0;
        PCCL_TRY(in.u32(machine));
        if (machine >= machines.size())
            return Status::invalid_argument(concat("there is no machine ", machine));
        HostTopology host{.name = {}, .ranks = {}, .topology = machines[machine]};
        PCCL_TRY(read_rest(in, host));
        hosts.push_back(std::move(host));
    }
    PCCL_TRY(in.finish());
    return JobTopology::make(std::move(hosts));
}

}  // namespace pccl::topo
