// SPDX-License-Identifier: Apache-2.0

// Record of the times of link program steps on this rank, for a measured timeline.
//
// The group's lock guards it. While it is off, it costs one comparison a step.
#pragma once

#include <cstddef>
#include <utility>

#include "csrc/schedule/timed_step.h"

namespace pccl::comm {

using schedule::TimedStep;
using schedule::TimedSteps;

class Timeline {
   public:
    static constexpr std::size_t kMostSteps = std::size_t{1} << 22U;

    /// Starts recording up to `most` steps and discards older ones. 0 turns it off.
    void start(std::size_t most) {
        taken_ = {};
        taken_.steps.resize(most);  // touches all pages now, not during a step
        size_ = 0;
    }
    [[nodiscard]] bool is_on() const { return !taken_.steps.empty(); }

    void add(const TimedStep& step) {
        if (size_ < taken_.steps.size())
            taken_.steps[size_++] = step;
        else
            ++taken_.lost;
    }

    /// Returns the steps since start(), and turns it off.
    [[nodiscard]] TimedSteps take() {
        TimedSteps taken = std::exchange(taken_, {});
        taken.steps.resize(std::exchange(size_, 0));
        return taken;
    }

   private:
    TimedSteps taken_;
    std::size_t size_ = 0;
};

}  // namespace pccl::comm
