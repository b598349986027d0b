// The steps of a schedule whose times differ, and what each waits for.
//
// Where the program of every rank is rank 0's, turned, and turning the ranks maps the network onto
// itself as well, turning maps what determines the times of all steps onto itself. It has one
// solution, so step i of every rank happens at the time of rank 0's: one rank stands for all, and
// its messages come from itself.
#pragma once

#include <utility>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/schedule/source.h"

namespace pccl::schedule {

/// Of rank 0 alone where it stands for all, else of every rank.
struct PlayedPrograms {
    Shape shape;
    bool one_for_all = false;
    int windows = 1;  // the lanes have all steps so many times
    std::vector<Program> programs{};
};

/// Errors as of generate(), and kUnsupported for more steps than are played.
[[nodiscard]] Result<PlayedPrograms> played_programs(const ScheduleSource& source,
                                                     const Shape& shape, const RankOrder& order,
                                                     bool network_turns, int windows);

using StepId = int;
inline constexpr StepId kNoStep = -1;

/// Who waits for what: a lane's next step and those that name it wait until a step is done, the
/// receiver until its message has arrived, and the sender of a later message until its slot is
/// free.
struct PlayedStep {
    const Step* step = nullptr;
    Rank rank = 0;
    int lane = 0;
    int index = 0;                  // in the lane
    int needs = 0;                  // so much must happen before it can begin
    StepId receiver = kNoStep;      // of the message that it sends
    StepId next_in_slot = kNoStep;  // sends into the slot that it empties
    bool is_last_of_lane = false;
};

class StepGraph {
   public:
    /// kInvalidArgument where messages are sent that nobody receives, or the other way round.
    /// `played` must outlive the graph.
    [[nodiscard]] static Result<StepGraph> build(const PlayedPrograms& played);

    [[nodiscard]] const PlayedPrograms& played() const { return *played_; }
    [[nodiscard]] int size() const { return static_cast<int>(steps_.size()); }
    [[nodiscard]] const PlayedStep& operator[](StepId id) const {
        return steps_[static_cast<std::size_t>(id)];
    }
    /// Calls visit(step) for each that waits until `id` is done.
    template <typename Visit>
    void for_each_after(StepId id, Visit visit) const {
        const auto at = static_cast<std::size_t>(id);
        if (!steps_[at].is_last_of_lane) visit(id + 1);
        for (int i = first_named_[at]; i < first_named_[at + 1]; ++i)
            visit(named_[static_cast<std::size_t>(i)]);
    }
    /// The rank at the other end of a port of a step, as `rank` runs it.
    [[nodiscard]] Rank peer_of(const Port& port, Rank rank) const {
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
    // Steps that wait for others by name: those that wait for step i are named_ from
    // first_named_[i] on.
    std::vector<int> first_named_;
    std::vector<StepId> named_;
};

}  // namespace pccl::schedule
