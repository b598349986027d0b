// SPDX-License-Identifier: Apache-2.0

// Measured times of the steps of a program on one rank.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// Times of a step in one window of the data, by system_clock(), which the processes of a host
/// share.
struct TimedStep {
    TimePoint begin{};           // its lane reached it, and its dependencies were done
    TimePoint moved{};           // its first bytes were received or sent
    TimePoint end{};             // its last bytes were received and handed to the link
    std::uint32_t sequence = 0;  // of its collective in the group; GPUs: of the schedules
    std::uint32_t window = 0;
    std::int32_t lane = 0;
    std::int32_t step = 0;
    Action action = Action::kNop;
    PeerPort from{};
    PeerPort to{};
    std::uint64_t bytes = 0;
    bool is_on_gpu = false;
};

/// Fields of pccl.timeline.steps.MeasuredStep without the rank: call, window, lane, index, action,
/// sender and its channel, receiver and its channel, bytes, whether a GPU did the step, and
/// nanoseconds of begin, moved and end.
using TimedStepFields =
    std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::int32_t, std::string_view, Rank,
               int, Rank, int, std::uint64_t, bool, std::int64_t, std::int64_t, std::int64_t>;
[[nodiscard]] inline TimedStepFields fields_of(const TimedStep& step) {
    const auto ns = [](TimePoint time) { return time.time_since_epoch().count(); };
    return {step.sequence,          step.window,    step.lane,         step.step,
            to_string(step.action), step.from.peer, step.from.channel, step.to.peer,
            step.to.channel,        step.bytes,     step.is_on_gpu,    ns(step.begin),
            ns(step.moved),         ns(step.end)};
}

struct TimedSteps {
    std::vector<TimedStep> steps;  // in order of completion
    std::uint64_t lost = 0;        // steps dropped because the buffer was full
    Duration clock_error{};        // maximum error of the times, for those of a GPU's clock
};

}  // namespace pccl::schedule
