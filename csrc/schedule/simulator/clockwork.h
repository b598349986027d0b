// SPDX-License-Identifier: Apache-2.0

// Event-driven computation of the times of all steps, and of the links that their messages cross.
#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "csrc/schedule/simulator/network.h"
#include "csrc/schedule/simulator/shared_links.h"
#include "csrc/schedule/simulator/step_graph.h"

namespace pccl::schedule {

struct Times {
    double begin = 0;
    double start = 0;
    double done = 0;
    double arrival = 0;
};

/// Last event that a step waited for.
struct Cause {
    enum class WaitKind : std::uint8_t { kNothing, kStep, kMessage, kSlot };
    WaitKind kind = WaitKind::kNothing;
    StepId step = kNoStep;
};

/// Event loop of a replay.
class Clockwork {
   public:
    Clockwork(const StepGraph& graph, const SimulatedNetwork& network, double chunk_bytes);

    /// Runs all events. Returns false if steps remain that wait for each other.
    bool run();

    [[nodiscard]] const std::vector<Times>& times() const { return times_; }
    [[nodiscard]] const std::vector<Cause>& causes() const { return causes_; }
    /// Returns, by step, the messages on the longest chain that ends with it, excluding its own.
    [[nodiscard]] const std::vector<int>& depths() const { return depths_; }
    /// Returns bytes by link. Where one rank represents all: by kind of link, for one link of that
    /// kind.
    [[nodiscard]] const std::vector<double>& bytes_over() const { return bytes_over_; }

   private:
    enum class StepEvent : std::uint8_t { kBegins, kStarts, kFlows, kLeft, kArrives };
    struct QueuedStep {
        double time = 0;
        StepEvent event{};
        int id = 0;  // step, or flow for kLeft
        std::uint32_t version = 0;
        bool operator>(const QueuedStep& other) const { return time > other.time; }
    };

    void happen(const QueuedStep& entry);
    void begin(StepId id);
    /// Returns the bytes that the rank's own work on a step occupies of its route.
    [[nodiscard]] double work_of(StepId id) const;
    [[nodiscard]] int more_runs(const Slices& slices) const;
    void start(StepId id);
    void flow(StepId id);
    void finish(StepId id);
    /// Starts a flow of `bytes` over `way`, either a message or a rank's work.
    void cross(StepId id, std::vector<Crossing> way, double bytes, bool is_work);
    void release(StepId waits, const Cause& cause);
    [[nodiscard]] double seconds_until_seen(StepId waits, const Cause& cause) const;
    [[nodiscard]] MessageRoute route_of(StepId id) const;
    [[nodiscard]] std::vector<Crossing> way_along(MessageRoute route) const;
    void later(double seconds, StepEvent event, int id) {
        queue_.push({now_ + seconds, event, id, 0});
    }

    const StepGraph& graph_;
    const SimulatedNetwork& network_;
    double chunk_bytes_;
    double now_ = 0;
    int finished_ = 0;
    SharedLinks links_;
    std::priority_queue<QueuedStep, std::vector<QueuedStep>, std::greater<>> queue_;
    std::vector<int> needs_;
    std::vector<Times> times_;
    std::vector<Cause> causes_;
    std::vector<int> depths_;
    std::vector<double> bytes_over_;
    std::vector<double> travel_;  // seconds by step, set when its message starts
    struct Crosser {
        StepId step = kNoStep;
        bool is_work = false;
    };
    std::vector<Crosser> crosser_of_;  // by flow
};

}  // namespace pccl::schedule
