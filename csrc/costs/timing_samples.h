// Times of one step, taken several times.
#pragma once

#include <algorithm>
#include <vector>

#include "csrc/base/clock.h"
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
    /// What others disturb takes longer, never shorter.
    [[nodiscard]] double least() const { return *std::ranges::min_element(seconds_); }
    /// What a quarter of them stays below: of times of which some are too short, for what was
    /// waited for was there already, or two cores happened to be near each other.
    [[nodiscard]] double quartile() const {
        std::vector<double> sorted = seconds_;
        std::ranges::sort(sorted);
        return sorted[sorted.size() / 4];
    }
    /// How much longer the one in the middle took than the least: 1 where all took the same, much
    /// where there are too few to tell.
    [[nodiscard]] double spread() const {
        constexpr std::size_t kFewest = 3;
        constexpr double kUnknown = 100;
        if (seconds_.size() < kFewest) return kUnknown;
        std::vector<double> sorted = seconds_;
        std::ranges::sort(sorted);
        return sorted[sorted.size() / 2] / sorted.front();
    }
    /// Whether the least has another near it, at most so many times as long.
    [[nodiscard]] bool agree(double times) const {
        std::vector<double> sorted = seconds_;
        std::ranges::sort(sorted);
        return sorted.size() > 1 && sorted[1] <= times * sorted[0];
    }
    /// The least, of one of `units`.
    [[nodiscard]] Figure least_of(double units = 1) const {
        if (seconds_.empty()) return {};
        return {.seconds = least() / units, .is_measured = true};
    }
    /// The quartile likewise, without what `beside` takes.
    [[nodiscard]] Figure quartile_of(double units = 1, double beside = 0) const {
        if (seconds_.empty() || quartile() <= beside) return {};
        return {.seconds = (quartile() - beside) / units, .is_measured = true};
    }

   private:
    std::vector<double> seconds_;
};

}  // namespace pccl::costs
