#include "csrc/schedule/simulator/clockwork.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "csrc/base/index.h"
#include "csrc/schedule/verifier/operands.h"

namespace pccl::schedule {
namespace {

/// Links that turning the ranks maps onto each other are one.
std::vector<double> kinds_of(const Network& network) {
    std::vector<double> kinds;
    for (std::size_t link = 0; link < network.bandwidth.size(); link += at(network.ranks))
        kinds.push_back(network.bandwidth[link]);
    return kinds;
}

}  // namespace

Clockwork::Clockwork(const StepGraph& graph, const Network& network, double chunk_bytes)
    : graph_(graph),
      network_(network),
      chunk_bytes_(chunk_bytes),
      links_(graph.played().one_for_all ? kinds_of(network) : network.bandwidth),
      times_(at(graph.size())),
      causes_(at(graph.size())),
      depths_(at(graph.size())),
      bytes_over_(graph.played().one_for_all ? network.bandwidth.size() / at(network.ranks)
                                             : network.bandwidth.size()),
      travel_(at(graph.size())) {
    for (StepId id = 0; id < graph.size(); ++id) needs_.push_back(graph[id].needs);
}

bool Clockwork::run() {
    for (StepId id = 0; id < graph_.size(); ++id)
        if (graph_[id].needs == 0) begin(id);
    while (!queue_.empty()) {
        now_ = queue_.top().time;
        while (!queue_.empty() && queue_.top().time == now_) {
            const Entry entry = queue_.top();
            queue_.pop();
            happen(entry);
        }
        links_.settle(now_, [&](SharedLinks::FlowId flow, std::uint32_t version, double end) {
            queue_.push({end, Event::kLeft, flow, version});
        });
    }
    return finished_ == graph_.size();
}

void Clockwork::happen(const Entry& entry) {
    switch (entry.event) {
        case Event::kStarts:
            return start(entry.id);
        case Event::kFlows:
            return flow(entry.id);
        case Event::kLeft: {
            if (!links_.is_current(entry.id, entry.version)) return;
            links_.remove(entry.id);
            const auto [step, is_sum] = crosser_of_[at(entry.id)];
            if (is_sum) return start(step);
            finish(step);
            return later(travel_[at(step)], Event::kArrives, step);
        }
        case Event::kArrives:
            times_[at(entry.id)].arrival = now_;
            return release(graph_[entry.id].receiver, {Cause::Kind::kMessage, entry.id});
    }
}

void Clockwork::begin(StepId id) {
    times_[at(id)].begin = now_;
    const Step& step = *graph_[id].step;
    const double bytes = operands_of(step.action)->reduces ? count_of(step) * chunk_bytes_ : 0;
    if (network_.sums.way && bytes > 0)
        return cross(id, network_.sums.way(graph_[id].rank), bytes * network_.sums.bytes_per_byte,
                     true);
    later(bytes * network_.reduce_seconds_per_byte, Event::kStarts, id);
}

void Clockwork::start(StepId id) {
    times_[at(id)].start = now_;
    if (const StepId next = graph_[id].next_in_slot; next != kNoStep)
        release(next, {Cause::Kind::kSlot, id});
    if (!graph_[id].step->to.is_used()) {
        times_[at(id)].arrival = now_;
        return finish(id);
    }
    later(route_of(id).start_seconds, Event::kFlows, id);
}

void Clockwork::flow(StepId id) {
    Route route = route_of(id);
    const double bytes = count_of(*graph_[id].step) * chunk_bytes_ + route.start_bytes;
    travel_[at(id)] = route.travel_seconds;
    cross(id, way_along(std::move(route)), bytes, false);
}

void Clockwork::cross(StepId id, std::vector<Crossing> way, double bytes, bool is_sum) {
    for (const Crossing& crossing : way) bytes_over_[at(crossing.link)] += bytes * crossing.times;
    const SharedLinks::FlowId flow = links_.add(std::move(way), bytes, now_);
    if (crosser_of_.size() <= at(flow)) crosser_of_.resize(at(flow) + 1);
    crosser_of_[at(flow)] = {id, is_sum};
}

void Clockwork::finish(StepId id) {
    ++finished_;
    times_[at(id)].done = now_;
    graph_.for_each_after(id, [&](StepId waits) { release(waits, {Cause::Kind::kStep, id}); });
}

void Clockwork::release(StepId waits, const Cause& cause) {
    // A free slot is no message.
    if (cause.kind != Cause::Kind::kSlot)
        depths_[at(waits)] =
            std::max(depths_[at(waits)],
                     depths_[at(cause.step)] + (cause.kind == Cause::Kind::kMessage ? 1 : 0));
    if (--needs_[at(waits)] > 0) return;
    causes_[at(waits)] = cause;
    begin(waits);
}

Route Clockwork::route_of(StepId id) const {
    return network_.route(graph_[id].rank, graph_[id].step->to.peer);
}

/// Where one message stands for all that turning the ranks makes of it, a link of each kind is
/// crossed by as many of them as the message crosses links of that kind.
std::vector<Crossing> Clockwork::way_along(Route route) const {
    if (!graph_.played().one_for_all) return std::move(route.way);
    std::vector<Crossing> kinds;
    for (const Crossing& crossing : route.way) {
        const int kind = crossing.link / network_.ranks;
        const auto known = std::ranges::find(kinds, kind, &Crossing::link);
        if (known == kinds.end())
            kinds.push_back({kind, crossing.times});
        else
            known->times += crossing.times;
    }
    return kinds;
}

}  // namespace pccl::schedule
