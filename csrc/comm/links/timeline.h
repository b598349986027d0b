// When the steps of link programs happened on this rank: what a measured timeline is made of.
//
// Belongs to a group and is used under its lock. While it is off, a step costs one comparison more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/schedule/schedule.h"

namespace pccl::comm {

/// A step in one window of the data. Times are of system_clock(), which the processes of a host
/// share.
struct TimedStep {
    TimePoint begin{};           // its lane came to it, and what it names had been done
    TimePoint moved{};           // its first bytes came or went
    TimePoint end{};             // its last bytes had come, and were handed to their link
    std::uint32_t sequence = 0;  // of its collective in the group
    std::uint32_t window = 0;
    std::int32_t lane = 0;
    std::int32_t step = 0;
    schedule::Action action = schedule::Action::kNop;
    schedule::Port from{};
    schedule::Port to{};
    std::uint64_t bytes = 0;
};

/// As pccl.timeline_steps.MeasuredStep has them, but for the rank: call, window, lane, index,
/// action, sender and its channel, receiver and its channel, bytes, and nanoseconds of begin, moved
/// and end.
using TimedStepFields =
    std::tuple<std::uint32_t, std::uint32_t, std::int32_t, std::int32_t, std::string_view, Rank,
               int, Rank, int, std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;
[[nodiscard]] PCCL_API TimedStepFields fields_of(const TimedStep& step);

struct TimedSteps {
    std::vector<TimedStep> steps;  // in the order in which they ended
    std::uint64_t lost = 0;        // ended when there was no more room
};

class Timeline {
   public:
    static constexpr std::size_t kMostSteps = std::size_t{1} << 22U;

    /// Has room for so many steps from now on, and has forgotten all others. 0: it is off.
    void start(std::size_t most) {
        taken_ = {};
        taken_.steps.resize(most);  // no page is touched for the first time by a step
        size_ = 0;
    }
    [[nodiscard]] bool is_on() const { return !taken_.steps.empty(); }

    void add(const TimedStep& step) {
        if (size_ < taken_.steps.size())
            taken_.steps[size_++] = step;
        else
            ++taken_.lost;
    }

    /// What it has seen since start(); it is off then.
    [[nodiscard]] TimedSteps take();

   private:
    TimedSteps taken_;
    std::size_t size_ = 0;
};

}  // namespace pccl::comm
