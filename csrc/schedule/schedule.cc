// SPDX-License-Identifier: Apache-2.0
#include "csrc/schedule/schedule.h"

#include <algorithm>

#include "csrc/base/text/text.h"

namespace pccl::schedule {
namespace {

std::string to_string(const PeerPort& port) { return concat(port.peer, "/", port.channel); }

}  // namespace

std::string_view to_string(Action action) {
    switch (action) {
        case Action::kNop:
            return "nop";
        case Action::kCopy:
            return "copy";
        case Action::kReduce:
            return "reduce";
        case Action::kSend:
            return "send";
        case Action::kRecv:
            return "recv";
        case Action::kRecvCopySend:
            return "recv_copy_send";
        case Action::kRecvReduce:
            return "recv_reduce";
        case Action::kRecvReduceSend:
            return "recv_reduce_send";
        case Action::kRecvReduceCopySend:
            return "recv_reduce_copy_send";
        case Action::kSwitchPhase:
            return "switch_phase";
    }
    return "unknown";
}

int blocks(CollectiveKind kind, Buffer buffer, int ranks) {
    const bool per_rank_input = kind == CollectiveKind::kReduceScatter ||
                                kind == CollectiveKind::kScatter ||
                                kind == CollectiveKind::kAllToAll;
    const bool per_rank_output = kind == CollectiveKind::kAllGather ||
                                 kind == CollectiveKind::kGather ||
                                 kind == CollectiveKind::kAllToAll;
    if (buffer == Buffer::kInput) return per_rank_input ? ranks : 1;
    return per_rank_output ? ranks : 1;
}

std::string to_string(const Step& step) {
    std::string text(to_string(step.action));
    if (!step.src.is_empty()) text += concat(" ", to_string(step.src));
    if (!step.dst.is_empty())
        text += concat(step.src.is_empty() ? " " : " -> ", to_string(step.dst));
    if (step.from.is_used()) text += concat(" from ", to_string(step.from));
    if (step.to.is_used()) text += concat(" to ", to_string(step.to));
    for (const Dependency& after : step.after)
        text += concat(" after ", after.lane, ":", after.step);
    return text;
}

std::string to_string(const Schedule& schedule) {
    const Shape& shape = schedule.shape;
    std::string text =
        concat(schedule.name, ": ", to_string(shape.kind), ", ", shape.ranks, " ranks, root ",
               shape.root, ", ", shape.chunks, " chunks, ", shape.slots, " slots");
    if (shape.aggregation > 0) text += concat(", at most ", shape.aggregation, " blocks a message");
    for (const std::string& phase : schedule.phases)
        text += concat(&phase == schedule.phases.data() ? ", phases " : ", ", phase);
    text += '\n';
    for (std::size_t rank = 0; rank < schedule.programs.size(); ++rank) {
        const Program& program = schedule.programs[rank];
        for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
            for (std::size_t step = 0; step < program.lanes[lane].size(); ++step)
                text += concat("rank ", rank, " lane ", lane, " step ", step, ": ",
                               to_string(program.lanes[lane][step]), "\n");
        }
    }
    return text;
}

std::vector<Rank> receivers_of(const Program& program) {
    std::vector<Rank> receivers;
    for (const Lane& lane : program.lanes)
        for (const Step& step : lane)
            if (step.to.is_used()) receivers.push_back(step.to.peer);
    std::ranges::sort(receivers);
    const auto repeated = std::ranges::unique(receivers);
    receivers.erase(repeated.begin(), repeated.end());
    return receivers;
}

}  // namespace pccl::schedule
