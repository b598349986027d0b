// When the steps of a program happened on one rank: what a measured timeline is made of.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/schedule/schedule.h"

namespace pccl::schedule {

/// A step in one window of the data. Times are of system_clock(), which the processes of a host
/// share.
struct TimedStep {
    TimePoint begin{};           // its lane came to it, and what it names had been done
    TimePoint moved{};           // its first bytes came or went
    TimePoint end{};             // its last bytes had come, and were handed to their link
    std::uint32_t sequence = 0;  // of its collective in the group, on GPUs of its schedules
    std::uint32_t window = 0;
    std::int32_t lane = 0;
    std::int32_t step = 0;
    Action action = Action::kNop;
    Port from{};
    Port to{};
    std::uint64_t bytes = 0;
    bool is_on_gpu = false;
};

/// As pccl.timeline_steps.MeasuredStep has them, but for the rank: call, window, lane, index,
/// action, sender and its channel, receiver and its channel, bytes, whether a GPU did it, and
/// nanoseconds of begin, moved and end.
using TimedStepFields =
    std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::int32_t, std::string_view, Rank,
               int, Rank, int, std::uint64_t, bool, std::int64_t, std::int64_t, std::int64_t>;
[[nodiscard]] PCCL_API TimedStepFields fields_of(const TimedStep& step);

struct TimedSteps {
    std::vector<TimedStep> steps;  // in the order in which they ended
    std::uint64_t lost = 0;        // ended when there was no more room
    Duration clock_error{};        // by which times may be off: those of a GPU's clock
};

}  // namespace pccl::schedule
