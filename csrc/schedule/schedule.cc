#include "csrc/schedule/schedule.h"

#include <sstream>

namespace pccl::schedule {
namespace {

std::ostream& operator<<(std::ostream& out, const Slice& slice) {
    return out << to_string(slice.buffer) << '[' << slice.offset << '+' << slice.count << ']';
}

std::ostream& operator<<(std::ostream& out, const Port& port) {
    return out << port.peer << '/' << port.channel;
}

}  // namespace

std::string_view to_string(CollectiveKind kind) {
    switch (kind) {
        case CollectiveKind::kAllReduce:
            return "all_reduce";
        case CollectiveKind::kAllGather:
            return "all_gather";
        case CollectiveKind::kReduceScatter:
            return "reduce_scatter";
        case CollectiveKind::kBroadcast:
            return "broadcast";
        case CollectiveKind::kReduce:
            return "reduce";
        case CollectiveKind::kGather:
            return "gather";
        case CollectiveKind::kScatter:
            return "scatter";
        case CollectiveKind::kAllToAll:
            return "all_to_all";
    }
    return "unknown";
}

std::string_view to_string(Buffer buffer) {
    switch (buffer) {
        case Buffer::kInput:
            return "input";
        case Buffer::kOutput:
            return "output";
        case Buffer::kScratch:
            return "scratch";
    }
    return "unknown";
}

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

bool is_rooted(CollectiveKind kind) {
    return kind == CollectiveKind::kBroadcast || kind == CollectiveKind::kReduce ||
           kind == CollectiveKind::kGather || kind == CollectiveKind::kScatter;
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
    std::ostringstream out;
    out << to_string(step.action);
    if (step.src.count > 0) out << ' ' << step.src;
    if (step.dst.count > 0) out << (step.src.count > 0 ? " -> " : " ") << step.dst;
    if (step.from.is_used()) out << " from " << step.from;
    if (step.to.is_used()) out << " to " << step.to;
    for (const Dependency& after : step.after) {
        out << " after " << after.lane << ':' << after.step;
    }
    return std::move(out).str();
}

std::string to_string(const Schedule& schedule) {
    std::ostringstream out;
    const Shape& shape = schedule.shape;
    out << schedule.name << ": " << to_string(shape.kind) << ", " << shape.ranks << " ranks, root "
        << shape.root << ", " << shape.chunks << " chunks, " << shape.slots << " slots\n";
    for (std::size_t rank = 0; rank < schedule.programs.size(); ++rank) {
        const Program& program = schedule.programs[rank];
        for (std::size_t lane = 0; lane < program.lanes.size(); ++lane) {
            for (std::size_t step = 0; step < program.lanes[lane].size(); ++step) {
                out << "rank " << rank << " lane " << lane << " step " << step << ": "
                    << to_string(program.lanes[lane][step]) << '\n';
            }
        }
    }
    return std::move(out).str();
}

}  // namespace pccl::schedule
