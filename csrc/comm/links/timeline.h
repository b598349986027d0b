// When the steps of link programs happened on this rank: what a measured timeline is made of.
//
// Belongs to a group and is used under its lock. While it is off, a step costs one comparison more.
#pragma once

#include <cstddef>

#include "csrc/schedule/timed_step.h"

namespace pccl::comm {

using schedule::TimedStep;
using schedule::TimedSteps;

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
