// SPDX-License-Identifier: Apache-2.0

// Order in which the steps can happen, or the cycle in which they wait for each other.
//
// Each lane runs until it must wait; then it joins the list of the step for which it waits. No step
// can take a resource that another needs (see event_graph.h), so if one order deadlocks, all do.
#include <algorithm>

#include "csrc/schedule/verifier/event_graph.h"

namespace pccl::schedule {
namespace {

constexpr int kNoLane = -1;

class Runner {
   public:
    explicit Runner(const EventGraph& graph)
        : graph_(graph),
          done_(static_cast<std::size_t>(graph.size())),
          first_waiter_(static_cast<std::size_t>(graph.size()), kNoLane),
          next_waiter_(graph.lanes().size(), kNoLane) {
        order_.reserve(done_.size());
        for (const LaneSpan& lane : graph.lanes()) next_.push_back(lane.first);
    }

    Result<std::vector<EventId>> run() {
        for (std::size_t lane = 0; lane < next_.size(); ++lane)
            runnable_.push_back(static_cast<int>(lane));
        while (!runnable_.empty()) {
            const int lane = runnable_.back();
            runnable_.pop_back();
            run_lane(lane);
        }
        if (order_.size() < done_.size()) return deadlock();
        return std::move(order_);
    }

   private:
    void run_lane(int lane) {
        const auto index = static_cast<std::size_t>(lane);
        for (EventId& id = next_[index]; id < graph_.lanes()[index].end; ++id) {
            if (const EventId missing = first_missing(id); missing != kNoEvent) {
                next_waiter_[index] = first_waiter_[static_cast<std::size_t>(missing)];
                first_waiter_[static_cast<std::size_t>(missing)] = lane;
                return;
            }
            finish(id);
        }
    }

    void finish(EventId id) {
        done_[static_cast<std::size_t>(id)] = true;
        order_.push_back(id);
        for (int lane = first_waiter_[static_cast<std::size_t>(id)]; lane != kNoLane;
             lane = next_waiter_[static_cast<std::size_t>(lane)]) {
            runnable_.push_back(lane);
        }
    }

    [[nodiscard]] EventId first_missing(EventId id) const {
        EventId missing = kNoEvent;
        graph_.for_each_predecessor(id, [&](EventId before) {
            if (!done_[static_cast<std::size_t>(before)]) missing = before;
            return missing == kNoEvent;
        });
        return missing;
    }

    /// Returns the step at which the lane of `id` is blocked before it reaches `id`.
    [[nodiscard]] EventId stuck_at(EventId id) const {
        return next_[static_cast<std::size_t>(graph_.event(id).lane)];
    }

    [[nodiscard]] std::string reason(EventId stuck, EventId missing) const {
        const GraphEvent& event = graph_.event(stuck);
        if (missing == event.sender) return "a message from ";
        if (missing == event.freer) return "a free slot after ";
        return "";
    }

    [[nodiscard]] Status deadlock() const {
        std::vector<EventId> way;
        EventId at = kNoEvent;
        for (std::size_t lane = 0; at == kNoEvent; ++lane) {
            if (next_[lane] < graph_.lanes()[lane].end) at = next_[lane];
        }
        while (std::ranges::find(way, at) == way.end()) {
            way.push_back(at);
            at = stuck_at(first_missing(at));
        }
        return Status::invalid_argument(describe_circle({std::ranges::find(way, at), way.end()}));
    }

    [[nodiscard]] std::string describe_circle(const std::vector<EventId>& circle) const {
        constexpr std::size_t kShown = 4;
        std::string text = concat("deadlock with ", graph_.schedule().shape.slots,
                                  " slots; these steps wait for each other: ");
        for (std::size_t i = 0; i < std::min(circle.size(), kShown); ++i) {
            const EventId missing = first_missing(circle[i]);
            text += concat(graph_.describe(circle[i]), " waits for ", reason(circle[i], missing),
                           graph_.describe(missing), "; ");
        }
        if (circle.size() > kShown) text += concat("and ", circle.size() - kShown, " more; ");
        return text + "put them into other lanes, another order or more slots";
    }

    const EventGraph& graph_;
    std::vector<bool> done_;
    std::vector<EventId> next_;  // of each lane
    std::vector<EventId> order_;
    std::vector<int> runnable_;      // lanes that can run
    std::vector<int> first_waiter_;  // by event: first of the lanes that wait for it
    std::vector<int> next_waiter_;   // by lane: next in the same list
};

}  // namespace

Result<std::vector<EventId>> order_of(const EventGraph& graph) { return Runner(graph).run(); }

int longest_message_chain(const EventGraph& graph, const std::vector<EventId>& order) {
    std::vector<int> depth(order.size());
    int longest = 0;
    for (const EventId id : order) {
        const GraphEvent& event = graph.event(id);
        int& own = depth[static_cast<std::size_t>(id)];
        graph.for_each_predecessor(id, [&](EventId before) {
            // A free slot adds no message to the chain.
            if (before == event.freer) return true;
            own = std::max(
                own, depth[static_cast<std::size_t>(before)] + (before == event.sender ? 1 : 0));
            return true;
        });
        longest = std::max(longest, own);
    }
    return longest;
}

}  // namespace pccl::schedule
