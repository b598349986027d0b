#include "csrc/comm/selection/cost_model.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "csrc/base/text.h"
#include "csrc/bootstrap/locality.h"
#include "csrc/transport/shm/ring.h"

namespace pccl::comm {
namespace {

using transport::TransportKind;

// Measured between processes of one 2-core host, and over veth between two network namespaces.
constexpr LinkCost kShmCost{
    .round_seconds = 0.5e-6, .message_seconds = 0.1e-6, .seconds_per_byte = 0.08e-9};
constexpr LinkCost kTcpCost{
    .round_seconds = 25e-6, .message_seconds = 4e-6, .seconds_per_byte = 0.5e-9};
constexpr double kReduceSecondsPerByte = 0.08e-9;
// Programs of further hosts are looked at up to so many steps.
constexpr std::size_t kManySteps = 1U << 16U;

/// A measured message of no length is a round and a message.
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

/// The slowest between two ranks of a host.
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

/// Between hosts, a message takes as long as one of those between the two that are farthest apart.
LinkCost far_cost(const bootstrap::Layout& layout) {
    LinkCost cost = measured_cost(layout, kTcpCost, topo::MeasuredLink::kSockets);
    if (layout.is_on_one_host()) return cost;
    const topo::JobTopology& job = layout.links()->job();
    double latency = 0;
    for (int from = 0; std::cmp_less(from, job.hosts().size()); ++from)
        for (int to = 0; to < from; ++to)
            latency = std::max(latency, job.link_between(from, to).latency);
    return latency > 0 ? scaled(cost, {latency, 1e-9 / cost.seconds_per_byte}) : cost;
}

double reduce_cost(const bootstrap::Layout& layout) {
    if (layout.links() == nullptr) return kReduceSecondsPerByte;
    double cost = 0;
    for (const topo::HostTopology& host : layout.links()->job().hosts()) {
        const auto rate = host.calibration.reduce();
        cost = std::max(cost, rate ? 1e-9 / *rate : kReduceSecondsPerByte);
    }
    return cost;
}

bool share_memory(const bootstrap::Roster& roster) {
    return std::all_of(roster.endpoints.begin(), roster.endpoints.end(),
                       [](const bootstrap::Endpoint& endpoint) {
                           return endpoint.addresses.contains(TransportKind::kShm);
                       });
}

/// Counts what the ranks of hosts send and receive.
class Census {
   public:
    Census(const schedule::Shape& shape, const LinkModel& model, const bootstrap::Layout& layout)
        : shape_(shape), model_(model), links_(*layout.links()), order_(layout.order()) {}

    /// False where the programs cannot be made.
    bool add_host(const schedule::ScheduleSource& source, int host) {
        for (const Rank rank : links_.job().hosts()[static_cast<std::size_t>(host)].ranks) {
            const auto program = generate_program(source, shape_, rank, order_);
            if (!program.is_ok()) return false;
            add_rank(*program, host, rank);
        }
        return true;
    }

    [[nodiscard]] std::size_t steps() const { return steps_; }

    [[nodiscard]] Traffic result() const {
        Traffic traffic;
        if (messages_ > 0)
            traffic.far_share = static_cast<double>(far_messages_) / static_cast<double>(messages_);
        traffic.seconds_per_byte = most_seconds_;
        traffic.busiest = links_.busiest(loads_);
        if (traffic.busiest.seconds > 0)
            traffic.busiest_name =
                concat(links_.name(traffic.busiest.link), ", ",
                       std::round(links_.bandwidth(traffic.busiest.link) * 1e3) / 1e3, " GB/s");
        return traffic;
    }

   private:
    void add_rank(const schedule::Program& program, int host, Rank rank) {
        double sends = 0;
        double receives = 0;
        for (const schedule::Lane& lane : program.lanes)
            for (const schedule::Step& step : lane) {
                ++steps_;
                const double bytes = schedule::count_of(step) / static_cast<double>(shape_.chunks);
                if (step.to.is_used()) sends += send(host, rank, step.to.peer, bytes);
                if (step.from.is_used()) receives += receive(host, step.from.peer, rank, bytes);
            }
        most_seconds_ = std::max({most_seconds_, sends, receives});
    }

    double send(int host, Rank rank, Rank peer, double bytes) {
        const bool is_far = links_.job().host_of(peer) != host;
        ++messages_;
        if (is_far) ++far_messages_;
        links_.charge(host, rank, peer, bytes, loads_);
        return bytes * (is_far ? model_.far : model_.near).seconds_per_byte;
    }

    double receive(int host, Rank peer, Rank rank, double bytes) {
        const bool is_far = links_.job().host_of(peer) != host;
        // What a rank of this host sends is counted where it does.
        if (is_far) links_.charge(host, peer, rank, bytes, loads_);
        return bytes * (is_far ? model_.far : model_.near).seconds_per_byte;
    }

    const schedule::Shape& shape_;
    const LinkModel& model_;
    const topo::JobLinks& links_;
    const schedule::RankOrder& order_;
    topo::LinkLoads loads_;
    std::size_t steps_ = 0;
    long long messages_ = 0;
    long long far_messages_ = 0;
    double most_seconds_ = 0;
};

}  // namespace

Reach reach_of(const bootstrap::Roster& roster) {
    return {.ranks = static_cast<int>(roster.endpoints.size()),
            .is_on_one_host = is_on_one_host(roster),
            .shares_memory = share_memory(roster)};
}

LinkModel link_model(const Reach& reach, const bootstrap::Layout& layout) {
    const std::size_t ring = transport::shm::ring_bytes(reach.ranks);
    LinkModel model;
    model.far = far_cost(layout);
    model.near = reach.shares_memory ? measured_cost(layout, kShmCost, topo::MeasuredLink::kMemory)
                                     : model.far;
    model.reduce_seconds_per_byte = reduce_cost(layout);
    model.capacity = reach.is_on_one_host ? ring : std::min(kTcpCapacity, ring);
    return model;
}

Traffic traffic(const schedule::ScheduleSource& source, const schedule::Shape& shape,
                const LinkModel& links, const bootstrap::Layout& layout) {
    Census census(shape, links, layout);
    const int hosts = static_cast<int>(layout.links()->job().hosts().size());
    for (int host = 0; host < hosts && census.steps() < kManySteps; ++host)
        if (!census.add_host(source, host)) break;
    return census.result();
}

double predict(const LinkModel& links, const schedule::Cost& cost) {
    return predict(links, cost, {.seconds_per_byte = links.near.seconds_per_byte}, cost.bytes_sent);
}

double predict(const LinkModel& links, const schedule::Cost& cost, const Traffic& traffic,
               double bytes) {
    const double far_rounds = std::ceil(cost.rounds * traffic.far_share);
    const double far_messages = static_cast<double>(cost.messages) * traffic.far_share;
    return far_rounds * links.far.round_seconds +
           (cost.rounds - far_rounds) * links.near.round_seconds +
           far_messages * links.far.message_seconds +
           (static_cast<double>(cost.messages) - far_messages) * links.near.message_seconds +
           bytes * std::max(traffic.seconds_per_byte, traffic.busiest.seconds) +
           cost.bytes_reduced * links.reduce_seconds_per_byte;
}

}  // namespace pccl::comm
