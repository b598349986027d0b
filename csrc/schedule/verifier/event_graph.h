// SPDX-License-Identifier: Apache-2.0

// Graph of all steps of all ranks, with their dependencies.
//
// A step waits for the previous step of its lane, for the steps that it names, for the sender of
// the message that it receives, and for a slot of the FIFO into which it sends: the n-th message
// requires that the (n - slots)-th was received. After a switch of the network's phase, every step
// waits for all steps of all ranks before the switch. Both ends of a FIFO belong to one lane each,
// so all of this is known statically, for any timing: the schedule is a fixed partial order, its
// happens-before.
#pragma once

#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/schedule.h"
#include "csrc/schedule/verifier/fault.h"

namespace pccl::schedule {

using EventId = int;
inline constexpr EventId kNoEvent = -1;

/// Step of one rank.
struct GraphEvent {
    const Step* step = nullptr;
    int lane = 0;               // counted over all ranks
    int part = 0;               // switches of phases before it, in its lane
    EventId sender = kNoEvent;  // sends the message received here
    EventId freer = kNoEvent;   // receives the previous message in the slot that this step fills
};

struct LaneSpan {
    Rank rank = 0;
    int index = 0;  // within the rank
    EventId first = 0;
    EventId end = 0;
};

class EventGraph {
   public:
    /// Builds the graph of a schedule whose structure has been checked; `schedule` must outlive it.
    /// Errors: a FIFO has two lanes at one end; numbers of sends and receives differ; sender and
    /// receiver disagree about the size of a message; a message crosses a switch of phases.
    [[nodiscard]] static Result<EventGraph> build(const Schedule& schedule);

    [[nodiscard]] int size() const { return static_cast<int>(events_.size()); }
    [[nodiscard]] const GraphEvent& event(EventId id) const {
        return events_[static_cast<std::size_t>(id)];
    }
    [[nodiscard]] const std::vector<LaneSpan>& lanes() const { return lanes_; }
    [[nodiscard]] const LaneSpan& lane_of(EventId id) const {
        return lanes_[static_cast<std::size_t>(event(id).lane)];
    }
    [[nodiscard]] const Schedule& schedule() const { return *schedule_; }
    /// Returns the last step that `after`, a dependency of a step of `rank`, waits for.
    [[nodiscard]] EventId target_of(Rank rank, const Dependency& after) const {
        const int lane = first_lane_[static_cast<std::size_t>(rank)] + after.lane;
        return lanes_[static_cast<std::size_t>(lane)].first + after.step;
    }

    [[nodiscard]] StepPlace place_of(EventId id) const {
        const LaneSpan& lane = lane_of(id);
        return {lane.rank, lane.index, id - lane.first};
    }
    [[nodiscard]] std::string describe(EventId id) const {
        return schedule::describe(place_of(id), *event(id).step);
    }

    /// Calls visit(event) for each direct predecessor of `id`, until it returns false.
    template <typename Visit>
    bool for_each_predecessor(EventId id, Visit visit) const {
        const GraphEvent& e = event(id);
        const LaneSpan& lane = lanes_[static_cast<std::size_t>(e.lane)];
        if (id > lane.first && !visit(id - 1)) return false;
        if (e.step->action == Action::kSwitchPhase) return for_each_before_switch(id, visit);
        for (const Dependency& after : e.step->after) {
            if (!visit(target_of(lane.rank, after))) return false;
        }
        if (e.sender != kNoEvent && !visit(e.sender)) return false;
        return e.freer == kNoEvent || visit(e.freer);
    }

   private:
    explicit EventGraph(const Schedule& schedule) : schedule_(&schedule) {}

    void add_events();
    [[nodiscard]] Status match_messages();
    /// Visits the predecessors of a switch. The switch of the first lane waits for the steps before
    /// the switches of all other lanes; the other switches wait for the first lane's.
    template <typename Visit>
    bool for_each_before_switch(EventId id, Visit visit) const {
        const std::vector<EventId>& lanes = switches_[static_cast<std::size_t>(event(id).part)];
        if (id != lanes.front()) return visit(lanes.front());
        for (const EventId other : lanes)
            if (other != id && other > lane_of(other).first && !visit(other - 1)) return false;
        return true;
    }

    const Schedule* schedule_;
    std::vector<GraphEvent> events_;
    std::vector<LaneSpan> lanes_;
    std::vector<int> first_lane_;                 // of each rank
    std::vector<std::vector<EventId>> switches_;  // switch events of all lanes, by switch of phases
};

/// Returns the events in a valid order. Error: a deadlock, with the cycle of steps that wait for
/// each other.
[[nodiscard]] Result<std::vector<EventId>> order_of(const EventGraph& graph);

/// Returns Verdict::rounds.
[[nodiscard]] int longest_message_chain(const EventGraph& graph, const std::vector<EventId>& order);

}  // namespace pccl::schedule
