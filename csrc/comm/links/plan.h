// A plan: one rank's program made ready to run, for one kind of call.
//
// Ports replace (peer, channel) pairs, so that the executor looks a link up once an operation; the
// cut says how much of each block a round moves. Plans hold no buffers and are shared by all
// operations of a shape.
#pragma once

#include <memory>
#include <vector>

#include "csrc/base/status.h"
#include "csrc/collective/geometry.h"
#include "csrc/schedule/source.h"

namespace pccl::comm {

inline constexpr int kNoPort = -1;

struct PlanStep {
    schedule::Action action = schedule::Action::kNop;
    schedule::Slices src;
    schedule::Slices dst;
    int from = kNoPort;  // index into Plan::receive_ports
    int to = kNoPort;    // index into Plan::send_ports
    std::vector<schedule::Dependency> after;
};

struct Plan {
    bool swaps_operands = false;  // ScheduleSource
    schedule::Shape shape;
    std::vector<std::vector<PlanStep>> lanes;
    std::vector<schedule::Port> send_ports;
    std::vector<schedule::Port> receive_ports;
    int scratch_chunks = 0;
    int longest_message = 1;  // chunks in the largest message
};

[[nodiscard]] Result<std::shared_ptr<const Plan>> make_plan(const schedule::ScheduleSource& source,
                                                            const schedule::Shape& shape, Rank rank,
                                                            const schedule::RankOrder& order = {});

}  // namespace pccl::comm
