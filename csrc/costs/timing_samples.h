// SPDX-License-Identifier: Apache-2.0

// Repeated times of one step.
#pragma once

#include <algorithm>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/costs/machine_costs.h"

namespace pccl::costs {

[[nodiscard]] inline double seconds_between(TimePoint from, TimePoint to) {
    return std::chrono::duration<double>(to - from).count();
}

template <typename Step>
[[nodiscard]] double seconds_of(const Step& step) {
    const TimePoint from = system_clock().now();
    step();
    return seconds_between(from, system_clock().now());
}

class TimingSamples {
   public:
    void add(double seconds) { seconds_.push_back(seconds); }
    [[nodiscard]] bool is_empty() const { return seconds_.empty(); }
    /// Returns the minimum: disturbances only make a step slower.
    [[nodiscard]] double least() const { return *std::ranges::min_element(seconds_); }
    /// Returns the lower quartile, for steps of which some times are too short: the awaited value
    /// had already arrived, or two cores happened to be close to each other.
    [[nodiscard]] double quartile() const {
        std::vector<double> sorted = seconds_;
        std::ranges::sort(sorted);
        return sorted[sorted.size() / 4];
    }
    /// Returns median over minimum: 1 if all are equal, a large value if there are too few samples.
    [[nodiscard]] double spread() const {
        constexpr std::size_t kFewest = 3;
        constexpr double kUnknown = 100;
        if (seconds_.size() < kFewest) return kUnknown;
        std::vector<double> sorted = seconds_;
        std::ranges::sort(sorted);
        return sorted[sorted.size() / 2] / sorted.front();
    }
    /// Returns whether the second-smallest sample is at most `times` times the minimum.
    [[nodiscard]] bool agree(double times) const {
        std::vector<double> sorted = seconds_;
        std::ranges::sort(sorted);
        return sorted.size() > 1 && sorted[1] <= times * sorted[0];
    }
    /// Returns the minimum, for one of `units`.
    [[nodiscard]] Figure least_of(double units = 1) const {
        if (seconds_.empty()) return {};
        return {.seconds = least() / units, .is_measured = true};
    }
    /// Returns the quartile for one of `units`, after subtraction of `beside`.
    [[nodiscard]] Figure quartile_of(double units = 1, double beside = 0) const {
        if (seconds_.empty() || quartile() <= beside) return {};
        return {.seconds = (quartile() - beside) / units, .is_measured = true};
    }

   private:
    std::vector<double> seconds_;
};

}  // namespace pccl::costs
