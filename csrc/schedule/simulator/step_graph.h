// SPDX-License-Identifier: Apache-2.0

// Graph of the steps of a schedule whose times differ, with their dependencies.
//
// If the program of every rank is rank 0's, rotated, and the network is symmetric under rotation,
// the equations for the times of all steps are symmetric, too. They have one solution, so step i of
// every rank happens at the time of rank 0's: one rank represents all, and its messages come from
// itself.
#pragma once

#include <utility>
#include <vector>

#include <pccl/status.h>
#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Program of rank 0 if it represents all, or else of every rank.
struct PlayedPrograms {
    Shape shape;
    bool one_for_all = false;
    int windows = 1;  // number of times that the lanes repeat all steps
    std::vector<Program> programs{};
};

/// Returns the programs to replay. Errors are those of generate(), and kUnsupported for too many
/// steps.
[[nodiscard]] Result<PlayedPrograms> played_programs(const ScheduleSource& source,
                                                     const Shape& shape, const RankOrder& order,
                                                     bool network_turns, int windows);

using StepId = int;
inline constexpr StepId kNoStep = -1;

/// Step with its dependents: the lane's next step and the steps that depend on it wait until it is
/// done, the receiver until its message has arrived, and the sender of a later message until its
/// slot is free.
struct PlayedStep {
    const Step* step = nullptr;
    Rank rank = 0;
    int lane = 0;
    int index = 0;                  // in the lane
    int needs = 0;                  // events that must happen before it can begin
    StepId receiver = kNoStep;      // of the message that it sends
    StepId next_in_slot = kNoStep;  // step that sends into the slot that this step empties
    bool is_last_of_lane = false;
};

class StepGraph {
   public:
    /// Builds the graph. `played` must outlive it. kInvalidArgument: a message has no receive step,
    /// or a receive step has no message.
    [[nodiscard]] static Result<StepGraph> build(const PlayedPrograms& played);

    [[nodiscard]] const PlayedPrograms& played() const { return *played_; }
    [[nodiscard]] int size() const { return static_cast<int>(steps_.size()); }
    [[nodiscard]] const PlayedStep& operator[](StepId id) const {
        return steps_[static_cast<std::size_t>(id)];
    }
    /// Calls visit(step) for each step that waits until `id` is done.
    template <typename Visit>
    void for_each_after(StepId id, Visit visit) const {
        const auto at = static_cast<std::size_t>(id);
        if (!steps_[at].is_last_of_lane) visit(id + 1);
        for (int i = first_named_[at]; i < first_named_[at + 1]; ++i)
            visit(named_[static_cast<std::size_t>(i)]);
    }
    /// Returns the rank at the other end of a port of a step, as run by `rank`.
    [[nodiscard]] Rank peer_of(const PeerPort& port, Rank rank) const {
        return played_->one_for_all ? (port.peer + rank) % played_->shape.ranks : port.peer;
    }

   private:
    explicit StepGraph(const PlayedPrograms& played) : played_(&played) {}

    void add_steps();
    void add_named();
    [[nodiscard]] Status match_messages();

    const PlayedPrograms* played_;
    std::vector<PlayedStep> steps_;
    std::vector<std::vector<StepId>> first_of_lane_;  // by program and lane
    // Steps with explicit dependencies: the steps that wait for step i start at
    // named_[first_named_[i]].
    std::vector<int> first_named_;
    std::vector<StepId> named_;
};

}  // namespace pccl::schedule
