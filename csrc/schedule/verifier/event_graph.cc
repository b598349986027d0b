// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/verifier/event_graph.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/schedule/verifier/operands.h"

namespace pccl::schedule {
namespace {

/// One end of one message.
struct End {
    Rank sender = 0;
    Rank receiver = 0;
    ChannelId channel = 0;
    EventId event = kNoEvent;

    [[nodiscard]] auto fifo() const { return std::tie(sender, receiver, channel); }
    [[nodiscard]] auto key() const { return std::tie(sender, receiver, channel, event); }
};

std::string name_of(const End& end) {
    return concat("FIFO ", end.sender, " -> ", end.receiver, " channel ", end.channel);
}

/// Returns the ends sorted by FIFO, and within a FIFO in the order of its lane. Consecutive steps
/// mostly use one FIFO, so this sorts such runs instead of ends.
std::vector<End> sorted(const std::vector<End>& ends) {
    std::vector<std::span<const End>> runs;
    for (auto begin = ends.begin(); begin != ends.end();) {
        const auto end = std::find_if(
            begin, ends.end(), [&](const End& each) { return each.fifo() != begin->fifo(); });
        runs.emplace_back(begin, end);
        begin = end;
    }
    std::ranges::sort(runs, {}, [](const auto& run) { return run.front().key(); });
    std::vector<End> in_order;
    in_order.reserve(ends.size());
    for (const auto run : runs) in_order.insert(in_order.end(), run.begin(), run.end());
    return in_order;
}

/// Takes the ends of the first FIFO from `rest`.
std::span<const End> take_fifo(std::span<const End>& rest) {
    std::size_t count = 1;
    while (count < rest.size() && rest[count].fifo() == rest[0].fifo()) ++count;
    const auto fifo = rest.first(count);
    rest = rest.subspan(count);
    return fifo;
}

Status check_one_lane(const EventGraph& graph, std::span<const End> ends, const char* action) {
    for (const End& end : ends) {
        if (graph.event(end.event).lane == graph.event(ends[0].event).lane) continue;
        return Status::invalid_argument(
            concat(graph.describe(end.event), ": ", action, " ", name_of(end), " like lane ",
                   graph.lane_of(ends[0].event).index,
                   "; one lane only may do so, or the order of messages is unknown"));
    }
    return Status::ok();
}

Status check_message(const EventGraph& graph, EventId sender, EventId receiver) {
    const Step& send = *graph.event(sender).step;
    const Step& receive = *graph.event(receiver).step;
    if (count_of(send) != count_of(receive)) {
        return Status::invalid_argument(concat(graph.describe(receiver), ": expects ",
                                               count_of(receive), " chunks, but ",
                                               graph.describe(sender), " sends ", count_of(send)));
    }
    if (graph.event(sender).part != graph.event(receiver).part)
        return Status::invalid_argument(
            concat(graph.describe(receiver), ": receives what ", graph.describe(sender),
                   " sends in another phase of the network; no message crosses a switch"));
    const int chunks = graph.schedule().shape.chunks;
    const int unlike = first_unlike(moved_by(send), moved_by(receive), chunks);
    if (unlike == kAllAlike) return Status::ok();
    return Status::invalid_argument(
        concat(graph.describe(receiver), ": chunk ", unlike,
               " of the message is another one of its block than ", graph.describe(sender),
               " sends; chunks may differ in length, so offsets must agree modulo ", chunks));
}

Status check_pairing(const EventGraph& graph, std::span<const End> sends,
                     std::span<const End> receives) {
    const std::size_t both = std::min(sends.size(), receives.size());
    if (sends.size() != receives.size()) {
        const auto& longer = sends.size() > both ? sends : receives;
        return Status::invalid_argument(
            concat(graph.describe(longer[both].event), ": has no counterpart; ", name_of(longer[0]),
                   " has ", sends.size(), " sends and ", receives.size(), " receives"));
    }
    for (std::size_t i = 0; i < both; ++i)
        PCCL_TRY(check_message(graph, sends[i].event, receives[i].event));
    return Status::ok();
}

}  // namespace

Result<EventGraph> EventGraph::build(const Schedule& schedule) {
    EventGraph graph(schedule);
    graph.add_events();
    PCCL_TRY(graph.match_messages());
    return graph;
}

void EventGraph::add_events() {
    switches_.resize(schedule_->phases.size());
    for (Rank rank = 0; rank < schedule_->shape.ranks; ++rank) {
        first_lane_.push_back(static_cast<int>(lanes_.size()));
        int index = 0;
        for (const Lane& lane : schedule_->programs[static_cast<std::size_t>(rank)].lanes) {
            const int number = static_cast<int>(lanes_.size());
            const int first = size();
            int part = 0;
            for (const Step& step : lane) {
                events_.push_back({.step = &step, .lane = number, .part = part});
                if (step.action == Action::kSwitchPhase)
                    switches_[static_cast<std::size_t>(part++)].push_back(size() - 1);
            }
            lanes_.push_back({rank, index++, first, size()});
        }
    }
}

Status EventGraph::match_messages() {
    std::vector<End> sends_found;
    std::vector<End> receives_found;
    for (EventId id = 0; id < size(); ++id) {
        const Rank rank = lane_of(id).rank;
        const PeerPort& to = event(id).step->to;
        const PeerPort& from = event(id).step->from;
        if (to.is_used()) sends_found.push_back({rank, to.peer, to.channel, id});
        if (from.is_used()) receives_found.push_back({from.peer, rank, from.channel, id});
    }
    const std::vector<End> all_sends = sorted(std::exchange(sends_found, {}));
    const std::vector<End> all_receives = sorted(std::exchange(receives_found, {}));
    std::span<const End> sends_left = all_sends;
    std::span<const End> receives_left = all_receives;
    while (!sends_left.empty() || !receives_left.empty()) {
        const bool has_send =
            !sends_left.empty() &&
            (receives_left.empty() || sends_left[0].fifo() <= receives_left[0].fifo());
        const bool has_receive =
            !receives_left.empty() &&
            (sends_left.empty() || receives_left[0].fifo() <= sends_left[0].fifo());
        const auto sends = has_send ? take_fifo(sends_left) : std::span<const End>{};
        const auto receives = has_receive ? take_fifo(receives_left) : std::span<const End>{};
        PCCL_TRY(check_one_lane(*this, sends, "sends into"));
        PCCL_TRY(check_one_lane(*this, receives, "receives from"));
        PCCL_TRY(check_pairing(*this, sends, receives));
        const auto slots = static_cast<std::size_t>(schedule_->shape.slots);
        for (std::size_t i = 0; i < sends.size(); ++i) {
            events_[static_cast<std::size_t>(receives[i].event)].sender = sends[i].event;
            if (i < slots) continue;
            events_[static_cast<std::size_t>(sends[i].event)].freer = receives[i - slots].event;
        }
    }
    return Status::ok();
}

}  // namespace pccl::schedule
