// SPDX-License-Identifier: Apache-2.0
#include "csrc/costs/model/traffic.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "csrc/base/text/text.h"

namespace pccl::costs {

using schedule::Cost;
using schedule::RankOrder;
using schedule::ScheduleSource;
using schedule::Shape;

namespace {

// Maximum number of steps up to which the programs of further hosts are examined.
constexpr std::size_t kManySteps = 1U << 16U;

/// Counter of the messages that the ranks of hosts send and receive.
class TrafficCounter {
   public:
    TrafficCounter(const Shape& shape, const LinkModel& model, const topo::JobLinks& links,
                   const RankOrder& order)
        : shape_(shape), model_(model), links_(links), order_(order) {}

    /// Adds the ranks of a host. Returns false if their programs cannot be made.
    bool add_host(const ScheduleSource& source, int host) {
        for (const Rank rank : links_.job().hosts()[static_cast<std::size_t>(host)].ranks) {
            const auto program = schedule::generate_program(source, shape_, rank, order_);
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
        traffic.far_peers = most_far_peers_;
        traffic.seconds_per_byte = most_seconds_;
        traffic.busiest = links_.busiest(loads_);
        if (traffic.busiest.seconds > 0)
            traffic.busiest_name =
                concat(links_.name(traffic.busiest.link), ", ",
                       std::round(links_.bandwidth(traffic.busiest.link) * 1e3) / 1e3, " GB/s");
        return traffic;
    }

   private:
    /// Bytes of a rank.
    struct Load {
        double sent = 0;
        double received = 0;
    };

    void add_rank(const schedule::Program& program, int host, Rank rank) {
        Load near;
        Load far;
        std::set<Rank> far_peers;
        for (const schedule::Lane& lane : program.lanes)
            for (const schedule::Step& step : lane) {
                ++steps_;
                const double bytes = schedule::count_of(step) / static_cast<double>(shape_.chunks);
                if (step.to.is_used()) {
                    const bool is_far = send(host, rank, step.to.peer, bytes);
                    (is_far ? far : near).sent += bytes;
                    if (is_far) far_peers.insert(step.to.peer);
                }
                if (step.from.is_used())
                    (receive(host, step.from.peer, rank, bytes) ? far : near).received += bytes;
            }
        most_seconds_ = std::max(most_seconds_, seconds_of(near, far));
        most_far_peers_ = std::max(most_far_peers_, static_cast<int>(far_peers.size()));
    }

    /// Returns the time of a rank. Sending and receiving overlap, except where the rank copies by
    /// itself.
    [[nodiscard]] double seconds_of(const Load& near, const Load& far) const {
        const double near_byte = model_.near.seconds_per_byte;
        const double far_byte = model_.far.seconds_per_byte;
        if (model_.near.copies)
            return (near.sent + near.received) * near_byte +
                   std::max(far.sent, far.received) * far_byte;
        return std::max(near.sent * near_byte + far.sent * far_byte,
                        near.received * near_byte + far.received * far_byte);
    }

    /// Counts a send; returns whether it goes to another host.
    bool send(int host, Rank rank, Rank peer, double bytes) {
        const bool is_far = links_.job().host_of(peer) != host;
        ++messages_;
        if (is_far) ++far_messages_;
        links_.charge(host, rank, peer, bytes, loads_);
        return is_far;
    }

    /// Counts a receive; returns whether it comes from another host.
    bool receive(int host, Rank peer, Rank rank, double bytes) {
        const bool is_far = links_.job().host_of(peer) != host;
        // Messages from ranks of this host are counted by their senders.
        if (is_far) links_.charge(host, peer, rank, bytes, loads_);
        return is_far;
    }

    const Shape& shape_;
    const LinkModel& model_;
    const topo::JobLinks& links_;
    const RankOrder& order_;
    topo::LinkLoads loads_;
    std::size_t steps_ = 0;
    long long messages_ = 0;
    long long far_messages_ = 0;
    double most_seconds_ = 0;
    int most_far_peers_ = 0;
};

/// Returns the factor by which transfers between hosts slow down when a rank waits for a late peer
/// while its port is idle. Measured among 4 hosts whose ranks had half a core each: a tenth with
/// two peers and a sixth with three; a ring took only the time of its bytes. Ranks with more CPU
/// time drift less.
double drift(int far_peers) {
    constexpr double kForTwiceAsMany = 0.05;
    return 1 + kForTwiceAsMany * std::log2(std::max(far_peers, 1));
}

}  // namespace

Traffic traffic(const ScheduleSource& source, const Shape& shape, const LinkModel& model,
                const topo::JobLinks& links, const RankOrder& order) {
    TrafficCounter census(shape, model, links, order);
    const int hosts = static_cast<int>(links.job().hosts().size());
    for (int host = 0; host < hosts && census.steps() < kManySteps; ++host)
        if (!census.add_host(source, host)) break;
    return census.result();
}

Cost in_windows(Cost cost, long long windows) {
    cost.rounds *= windows;
    cost.messages *= windows;
    return cost;
}

double seconds_over_links(const LinkModel& model, const Cost& cost, const Traffic& traffic,
                          double bytes) {
    const double rounds = static_cast<double>(cost.rounds);
    const double far_rounds = std::ceil(rounds * traffic.far_share);
    const double far_messages = static_cast<double>(cost.messages) * traffic.far_share;
    return far_rounds * model.far.round_seconds + (rounds - far_rounds) * model.near.round_seconds +
           far_messages * model.far.message_seconds +
           (static_cast<double>(cost.messages) - far_messages) * model.near.message_seconds +
           bytes * std::max(traffic.seconds_per_byte, traffic.busiest.seconds) *
               drift(traffic.far_peers) +
           cost.bytes_reduced * model.reduce_seconds_per_byte;
}

}  // namespace pccl::costs
