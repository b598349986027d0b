// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/link_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "csrc/base/text/text.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/transport/shm/ring.h"

namespace pccl::costs {
namespace {

using transport::TransportKind;

// Numbers of cache line round trips. A message moves its header, its first bytes and the counters
// of its ring; a rank's own work for a message moves the counters once more.
constexpr double kTripsInRound = 4;
constexpr double kTripsInMessage = 3;

/// Returns the cost of rings in shared memory: one rank writes and the other reads, and both are
/// copies.
LinkCost ring_cost(std::size_t ring_bytes, const MachineCosts& costs) {
    const Level level = level_of_rings(ring_bytes, costs);
    return {.round_seconds = kTripsInRound * costs.core_round_trip.seconds,
            .message_seconds = kTripsInMessage * costs.core_round_trip.seconds,
            .seconds_per_byte = core_transfer_at(level, costs).both() / 2};
}

/// Returns the cost over TCP. For each message that a rank sends it receives one, which takes it as
/// long. A rank that waits for a message before it sends waits for the peer's own time.
LinkCost tcp_cost(const MachineCosts& costs) {
    return {.round_seconds = costs.tcp_message.seconds,
            .message_seconds = costs.tcp_round.seconds,
            .seconds_per_byte = costs.tcp_byte.seconds};
}

/// Scales a cost to a measurement. A measured message of zero bytes consists of a round and a
/// message.
LinkCost scaled(const LinkCost& usual, const topo::LinkTimes& measured) {
    const double factor = measured.latency / (usual.round_seconds + usual.message_seconds);
    return {.round_seconds = usual.round_seconds * factor,
            .message_seconds = usual.message_seconds * factor,
            .seconds_per_byte = 1e-9 / measured.bandwidth};
}

LinkCost slower(const LinkCost& a, const LinkCost& b) {
    return {.round_seconds = std::max(a.round_seconds, b.round_seconds),
            .message_seconds = std::max(a.message_seconds, b.message_seconds),
            .seconds_per_byte = std::max(a.seconds_per_byte, b.seconds_per_byte)};
}

/// Returns the slowest link between two ranks of a host.
std::optional<topo::LinkTimes> slowest(const topo::HostTopology& host, topo::MeasuredLink link) {
    std::optional<topo::LinkTimes> found;
    for (std::size_t i = 0; i < host.ranks.size(); ++i) {
        const auto times = host.calibration.between(link, host.numa_of(0), host.numa_of(i));
        if (times && (!found || times->latency > found->latency)) found = times;
    }
    return found;
}

LinkCost measured_cost(const bootstrap::Layout& layout, const LinkCost& usual,
                       topo::MeasuredLink link) {
    if (layout.links() == nullptr) return usual;
    std::optional<LinkCost> cost;
    for (const topo::HostTopology& host : layout.links()->job().hosts()) {
        const auto times = slowest(host, link);
        const LinkCost own = times ? scaled(usual, *times) : usual;
        cost = cost ? slower(*cost, own) : own;
    }
    return cost.value_or(usual);
}

/// Returns the cost of TCP between ranks of a host.
LinkCost loopback_cost(const bootstrap::Layout& layout, const MachineCosts& costs) {
    return measured_cost(layout, tcp_cost(costs), topo::MeasuredLink::kSockets);
}

/// Returns the timed paths to the first rank's host.
std::vector<const topo::HostWay*> timed_ways(const bootstrap::Layout& layout) {
    std::vector<const topo::HostWay*> ways;
    if (layout.links() == nullptr) return ways;
    for (const topo::HostTopology& host : layout.links()->job().hosts())
        if (host.way) ways.push_back(&*host.way);
    return ways;
}

/// Returns the cost on the slowest path that a group on several hosts has timed; otherwise the cost
/// on loopback.
LinkCost timed_cost(const bootstrap::Layout& layout, const MachineCosts& costs) {
    std::optional<LinkCost> cost;
    for (const topo::HostWay* const way : timed_ways(layout)) {
        const LinkCost own{.round_seconds = way->message,
                           .message_seconds = way->round,
                           .seconds_per_byte = way->byte};
        cost = cost ? slower(*cost, own) : own;
    }
    return cost ? *cost : loopback_cost(layout, costs);
}

/// Returns the latency that `pccl topo --measure --meet` measured between the two most distant
/// hosts; 0: not measured.
double longest_latency(const bootstrap::Layout& layout) {
    double latency = 0;
    if (layout.is_on_one_host()) return latency;
    const topo::JobTopology& job = layout.links()->job();
    for (int from = 0; std::cmp_less(from, job.hosts().size()); ++from)
        for (int to = 0; to < from; ++to)
            latency = std::max(latency, job.link_between(from, to).latency);
    return latency;
}

LinkCost far_cost(const bootstrap::Layout& layout, const MachineCosts& costs) {
    const LinkCost cost = timed_cost(layout, costs);
    const double latency = longest_latency(layout);
    return latency > 0 ? scaled(cost, {latency, 1e-9 / cost.seconds_per_byte}) : cost;
}

/// Returns "; between hosts ..." for a group on several hosts; empty if all costs are defaults.
std::string source_of_far(const bootstrap::Layout& layout, const MachineCosts& costs) {
    if (layout.is_on_one_host()) return {};
    const std::vector<const topo::HostWay*> ways = timed_ways(layout);
    const std::string_view start =
        longest_latency(layout) > 0 ? ", a message by pccl topo --measure --meet" : "";
    if (ways.empty())
        return costs.is_measured() || !start.empty()
                   ? concat("; between hosts TCP as on loopback", start)
                   : std::string();
    const auto* const slowest = *std::ranges::max_element(ways, {}, &topo::HostWay::round);
    const LinkCost cost = timed_cost(layout, costs);
    const auto shown = [](double value) { return std::round(value * 100) / 100; };
    return concat("; between hosts TCP takes ", shown(cost.message_seconds * 1e6), " us and ",
                  shown(cost.seconds_per_byte * 1e9), " ns a byte, measured ", slowest->date,
                  ways.size() > 1 ? concat(", the slowest of ", ways.size(), " ways") : "", " to ",
                  slowest->to, start);
}

double reduce_cost(const bootstrap::Layout& layout, const MachineCosts& costs) {
    const double usual = at(costs.sum, Level::kSecond);
    if (layout.links() == nullptr) return usual;
    double cost = 0;
    for (const topo::HostTopology& host : layout.links()->job().hosts()) {
        const auto rate = host.calibration.reduce();
        cost = std::max(cost, rate ? 1e-9 / *rate : usual);
    }
    return cost;
}

/// Multiplies costs by the ranks on a core: a rank waits for the work of the others that share its
/// core. In a round each of them runs once.
LinkCost in_turns(LinkCost cost, int ranks_on_core, double change_seconds) {
    cost.round_seconds = std::max(cost.round_seconds, change_seconds * ranks_on_core);
    cost.message_seconds *= ranks_on_core;
    cost.seconds_per_byte *= ranks_on_core;
    return cost;
}

/// Adds wake-ups: a receiver sleeps, so that each message costs a switch of its core, which others
/// use meanwhile.
LinkCost with_sleepers(LinkCost cost, int ranks_on_core, double change_seconds) {
    cost.message_seconds += change_seconds;
    return in_turns(cost, ranks_on_core, change_seconds);
}

bool share_memory(const bootstrap::Roster& roster) {
    return bootstrap::why_memory_is_apart(roster).empty() &&
           std::all_of(roster.endpoints.begin(), roster.endpoints.end(),
                       [](const bootstrap::Endpoint& endpoint) {
                           return endpoint.address.links.contains(TransportKind::kShm);
                       });
}

int most_on_a_host(const bootstrap::Roster& roster) {
    int most = 0;
    for (const auto& ranks : bootstrap::ranks_by_host(roster))
        most = std::max(most, static_cast<int>(ranks.size()));
    return most;
}

}  // namespace

Level level_of_rings(std::size_t bytes, const MachineCosts& costs) {
    return std::max(costs.level_of(2 * bytes), Level::kSecond);
}

Reach reach_of(const bootstrap::Roster& roster, const MachineCosts& costs) {
    const bool shares_memory = share_memory(roster);
    const int most = most_on_a_host(roster);
    const int cores = costs.origin.cores > 0 ? costs.origin.cores : std::max(most, 1);
    return {.ranks = static_cast<int>(roster.endpoints.size()),
            .is_on_one_host = is_on_one_host(roster),
            .shares_memory = shares_memory,
            .most_on_a_host = shares_memory ? most : 1,
            .ranks_on_core = (most + cores - 1) / cores};
}

LinkModel link_model(const Reach& reach, const bootstrap::Layout& layout,
                     const MachineCosts& costs) {
    LinkModel model;
    model.far = far_cost(layout, costs);
    const std::size_t ring = transport::shm::ring_bytes(reach.most_on_a_host, reach.ranks);
    model.near = reach.shares_memory
                     ? measured_cost(layout, ring_cost(ring, costs), topo::MeasuredLink::kMemory)
                     : loopback_cost(layout, costs);
    model.near.copies = reach.shares_memory;
    model.reduce_seconds_per_byte = reduce_cost(layout, costs);
    if (reach.ranks_on_core > 1) {
        const double change = costs.shared_core_round_trip.seconds / 2;
        model.far = with_sleepers(model.far, reach.ranks_on_core, change);
        // If some ranks wait for other hosts, the ranks that wait for them sleep, too.
        model.near = reach.is_on_one_host && model.near.copies
                         ? in_turns(model.near, reach.ranks_on_core, change)
                         : with_sleepers(model.near, reach.ranks_on_core, change);
        model.reduce_seconds_per_byte *= reach.ranks_on_core;
    }
    model.capacity = kTcpCapacity;
    if (reach.shares_memory)
        model.capacity = reach.is_on_one_host ? ring : std::min(ring, kTcpCapacity);
    return model;
}

bootstrap::LinksCountedOn counted_on(const bootstrap::Layout& layout, const MachineCosts& costs) {
    bootstrap::LinksCountedOn found = bootstrap::links_counted_on(layout);
    found.costs_from = source_of(costs) + source_of_far(layout, costs);
    found.costs = lines_of(costs);
    return found;
}

}  // namespace pccl::costs
