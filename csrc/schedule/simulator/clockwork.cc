// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/clockwork.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/schedule/verifier/operands.h"

namespace pccl::schedule {
namespace {

/// Returns one bandwidth for each class of links that rotations of the ranks map onto each other.
std::vector<double> kinds_of(const SimulatedNetwork& network) {
    std::vector<double> kinds;
    for (std::size_t link = 0; link < network.bandwidth.size(); link += at(network.ranks))
        kinds.push_back(network.bandwidth[link]);
    return kinds;
}

double added_bytes(const Step& step, double chunk_bytes) {
    return operands_of(step.action)->reduces ? count_of(step) * chunk_bytes : 0;
}

/// Returns the chunks that a step sends from memory; empty if it forwards the message without
/// storing it.
Slices sent_by(const Step& step) {
    if (step.action == Action::kRecvReduceSend) return {};
    return step.from.is_used() ? step.dst : step.src;
}

}  // namespace

Clockwork::Clockwork(const StepGraph& graph, const SimulatedNetwork& network, double chunk_bytes)
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
        // "== now_" would loop for ever with a time that is NaN.
        while (!queue_.empty() && !(queue_.top().time > now_)) {
            const QueuedStep entry = queue_.top();
            queue_.pop();
            happen(entry);
        }
        links_.settle(now_, [&](SharedLinks::FlowId flow, std::uint32_t version, double end) {
            queue_.push({end, StepEvent::kLeft, flow, version});
        });
    }
    return finished_ == graph_.size();
}

void Clockwork::happen(const QueuedStep& entry) {
    switch (entry.event) {
        case StepEvent::kBegins:
            return begin(entry.id);
        case StepEvent::kStarts:
            return start(entry.id);
        case StepEvent::kFlows:
            return flow(entry.id);
        case StepEvent::kLeft: {
            if (!links_.is_current(entry.id, entry.version)) return;
            links_.remove(entry.id);
            const auto [step, is_work] = crosser_of_[at(entry.id)];
            if (is_work) return start(step);
            finish(step);
            return later(travel_[at(step)], StepEvent::kArrives, step);
        }
        case StepEvent::kArrives:
            times_[at(entry.id)].arrival = now_;
            return release(graph_[entry.id].receiver, {Cause::WaitKind::kMessage, entry.id});
    }
}

void Clockwork::begin(StepId id) {
    times_[at(id)].begin = now_;
    if (const double work = work_of(id); network_.sums.way && work > 0)
        return cross(id, network_.sums.way(graph_[id].rank), work, true);
    later(added_bytes(*graph_[id].step, chunk_bytes_) * network_.reduce_seconds_per_byte,
          StepEvent::kStarts, id);
}

double Clockwork::work_of(StepId id) const {
    const Step& step = *graph_[id].step;
    double work = added_bytes(step, chunk_bytes_) * network_.sums.bytes_per_byte;
    if (step.from.is_used())
        work += network_.bytes_per_receipt +
                count_of(step) * chunk_bytes_ * network_.bytes_per_byte_taken +
                more_runs(step.dst.is_empty() ? step.src : step.dst) * network_.bytes_per_run;
    return work;
}

/// Returns the number of runs of chunks, without the first, that executors copy: they copy adjacent
/// chunks of a block together.
int Clockwork::more_runs(const Slices& slices) const {
    const PlayedPrograms& played = graph_.played();
    int runs = 0;
    for (const Slice& slice : slices) {
        const int last = slice.offset + slice.count - 1;
        runs += slice.buffer == Buffer::kScratch || played.windows > 1
                    ? slice.count
                    : last / played.shape.chunks - slice.offset / played.shape.chunks + 1;
    }
    return std::max(runs - 1, 0);
}

void Clockwork::start(StepId id) {
    times_[at(id)].start = now_;
    if (const StepId next = graph_[id].next_in_slot; next != kNoStep)
        release(next, {Cause::WaitKind::kSlot, id});
    if (!graph_[id].step->to.is_used()) {
        times_[at(id)].arrival = now_;
        return finish(id);
    }
    later(route_of(id).start_seconds, StepEvent::kFlows, id);
}

void Clockwork::flow(StepId id) {
    MessageRoute route = route_of(id);
    const Step& step = *graph_[id].step;
    const double bytes = count_of(step) * chunk_bytes_ + route.start_bytes +
                         more_runs(sent_by(step)) * network_.bytes_per_run;
    travel_[at(id)] = route.travel_seconds;
    cross(id, way_along(std::move(route)), bytes, false);
}

void Clockwork::cross(StepId id, std::vector<Crossing> way, double bytes, bool is_work) {
    for (const Crossing& crossing : way) bytes_over_[at(crossing.link)] += bytes * crossing.times;
    const SharedLinks::FlowId flow = links_.add(std::move(way), bytes, now_);
    if (crosser_of_.size() <= at(flow)) crosser_of_.resize(at(flow) + 1);
    crosser_of_[at(flow)] = {id, is_work};
}

void Clockwork::finish(StepId id) {
    ++finished_;
    times_[at(id)].done = now_;
    graph_.for_each_after(id, [&](StepId waits) { release(waits, {Cause::WaitKind::kStep, id}); });
}

void Clockwork::release(StepId waits, const Cause& cause) {
    // A free slot adds no message to the chain.
    if (cause.kind != Cause::WaitKind::kSlot)
        depths_[at(waits)] =
            std::max(depths_[at(waits)],
                     depths_[at(cause.step)] + (cause.kind == Cause::WaitKind::kMessage ? 1 : 0));
    if (--needs_[at(waits)] > 0) return;
    causes_[at(waits)] = cause;
    const double unseen = seconds_until_seen(waits, cause);
    if (unseen > 0) return later(unseen, StepEvent::kBegins, waits);
    begin(waits);
}

double Clockwork::seconds_until_seen(StepId waits, const Cause& cause) const {
    const PlayedStep& before = graph_[cause.step];
    const bool is_earlier_lane =
        cause.kind == Cause::WaitKind::kStep && graph_[waits].lane < before.lane;
    if (!is_earlier_lane || before.is_last_of_lane) return 0;
    return graph_[cause.step + 1].step->from.is_used() ? network_.look_seconds : 0;
}

MessageRoute Clockwork::route_of(StepId id) const {
    return network_.route(graph_[id].rank, graph_[id].step->to.peer);
}

/// Returns the links of a route. If one message represents all its rotations, each class of links
/// is crossed as often as the message crosses links of that class.
std::vector<Crossing> Clockwork::way_along(MessageRoute route) const {
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
