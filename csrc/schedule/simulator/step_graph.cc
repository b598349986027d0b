// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/simulator/step_graph.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <tuple>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

constexpr long long kMostSteps = 1LL << 22U;

long long steps_of(const Program& program) {
    long long steps = 0;
    for (const Lane& lane : program.lanes) steps += static_cast<long long>(lane.size());
    return steps;
}

/// Repeats the steps for each window; dependencies stay within a window.
void repeat(Program& program, int windows) {
    std::vector<std::size_t> lengths;
    lengths.reserve(program.lanes.size());
    for (const Lane& lane : program.lanes) lengths.push_back(lane.size());
    for (Lane& lane : program.lanes) {
        const std::size_t length = lane.size();
        lane.reserve(length * at(windows));
        for (std::size_t i = length; i < length * at(windows); ++i) {
            Step step = lane[i - length];
            for (Dependency& after : step.after)
                after.step += static_cast<int>(lengths[at(after.lane)]);
            lane.push_back(std::move(step));
        }
    }
}

/// Sender, receiver and channel. If one rank represents all, the sender is rank 0.
using Fifo = std::tuple<Rank, Rank, ChannelId>;

struct FifoEnds {
    std::vector<StepId> sends;
    std::vector<StepId> receives;
};

}  // namespace

Result<PlayedPrograms> played_programs(const ScheduleSource& source, const Shape& shape,
                                       const RankOrder& order, bool network_turns, int windows) {
    PlayedPrograms played{
        .shape = shape,
        .one_for_all = network_turns && order.empty() && source.symmetry != Symmetry::kNone,
        .windows = windows,
        .programs = {}};
    const int programs = played.one_for_all ? 1 : shape.ranks;
    long long steps = 0;
    for (Rank rank = 0; rank < programs; ++rank) {
        PCCL_ASSIGN_OR_RETURN(Program program, generate_program(source, shape, rank, order));
        steps += steps_of(program) * windows;
        if (steps > kMostSteps)
            return Status::unsupported(concat(
                source.name, " over ", shape.ranks, " ranks",
                windows > 1 ? concat(", ", windows, " times,") : "", " has more than ", kMostSteps,
                " steps, which are played one by one where programs or links of ranks "
                "differ"));
        repeat(program, windows);
        played.programs.push_back(std::move(program));
    }
    return played;
}

Result<StepGraph> StepGraph::build(const PlayedPrograms& played) {
    StepGraph graph(played);
    graph.add_steps();
    graph.add_named();
    PCCL_TRY(graph.match_messages());
    return graph;
}

void StepGraph::add_steps() {
    for (std::size_t rank = 0; rank < played_->programs.size(); ++rank) {
        auto& first_of_lane = first_of_lane_.emplace_back();
        int lane_index = 0;
        for (const Lane& lane : played_->programs[rank].lanes) {
            first_of_lane.push_back(size());
            for (const Step& step : lane) {
                const int index = size() - first_of_lane.back();
                steps_.push_back({.step = &step,
                                  .rank = static_cast<Rank>(rank),
                                  .lane = lane_index,
                                  .index = index,
                                  .needs = (index > 0 ? 1 : 0) +
                                           static_cast<int>(step.after.size()) +
                                           (step.from.is_used() ? 1 : 0),
                                  .is_last_of_lane = index + 1 == static_cast<int>(lane.size())});
            }
            ++lane_index;
        }
    }
}

void StepGraph::add_named() {
    const auto for_each_name = [&](auto visit) {
        for (StepId id = 0; id < size(); ++id)
            for (const Dependency& after : (*this)[id].step->after)
                visit(id, first_of_lane_[at((*this)[id].rank)][at(after.lane)] + after.step);
    };
    first_named_.assign(steps_.size() + 2, 0);
    for_each_name([&](StepId /*waits*/, StepId before) { ++first_named_[at(before) + 2]; });
    std::partial_sum(first_named_.begin(), first_named_.end(), first_named_.begin());
    named_.resize(at(first_named_.back()));
    for_each_name(
        [&](StepId waits, StepId before) { named_[at(first_named_[at(before) + 1]++)] = waits; });
}

Status StepGraph::match_messages() {
    const int ranks = played_->shape.ranks;
    const auto fifo = [&](Rank sender, Rank receiver, ChannelId channel) {
        if (!played_->one_for_all) return Fifo{sender, receiver, channel};
        return Fifo{0, (receiver - sender + ranks) % ranks, channel};
    };
    std::map<Fifo, FifoEnds> fifos;
    for (StepId id = 0; id < size(); ++id) {
        const auto& [step, rank, lane, index, needs, receiver, next, is_last] = (*this)[id];
        if (step->to.is_used())
            fifos[fifo(rank, step->to.peer, step->to.channel)].sends.push_back(id);
        if (step->from.is_used())
            fifos[fifo(step->from.peer, rank, step->from.channel)].receives.push_back(id);
    }
    const auto slots = at(played_->shape.slots);
    for (const auto& [key, ends] : fifos) {
        if (ends.sends.size() != ends.receives.size())
            return Status::invalid_argument(
                concat("from rank ", std::get<0>(key), " to rank ", std::get<1>(key), ", channel ",
                       std::get<2>(key), ", go ", ends.sends.size(), " messages, of which ",
                       ends.receives.size(), " are received"));
        for (std::size_t i = 0; i < ends.sends.size(); ++i) {
            steps_[at(ends.sends[i])].receiver = ends.receives[i];
            if (i < slots) continue;
            steps_[at(ends.receives[i - slots])].next_in_slot = ends.sends[i];
            ++steps_[at(ends.sends[i])].needs;
        }
    }
    return Status::ok();
}

}  // namespace pccl::schedule
