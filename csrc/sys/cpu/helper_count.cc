// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/helper_count.h"

#include <algorithm>
#include <bit>

namespace pccl::sys {

HelperCount::HelperCount(int most) : most_(std::max(most, 0)) {}

std::size_t HelperCount::size_class(std::size_t bytes) {
    const auto doublings = static_cast<std::size_t>(std::bit_width(bytes / kFewestBytes)) - 1;
    return std::min(doublings, kSizes - 1);
}

int HelperCount::helpers_at(int level) const { return std::min((1 << level) - 1, most_); }

bool HelperCount::has_level(int level) const {
    if (level < 0 || level >= kLevels) return false;
    return level == 0 || helpers_at(level) > helpers_at(level - 1);
}

int HelperCount::next(std::size_t bytes) const {
    if (most_ == 0 || bytes < kFewestBytes) return 0;
    const Habit& habit = habits_[size_class(bytes)];
    return helpers_at(habit.level + habit.trial);
}

void HelperCount::record(std::size_t bytes, Duration taken) {
    if (most_ == 0 || bytes < kFewestBytes) return;
    Habit& habit = habits_[size_class(bytes)];
    const double seconds =
        std::chrono::duration<double>(taken).count() / static_cast<double>(bytes);
    double& least = habit.trial == 0 ? habit.usual : habit.tried;
    // Before a trial, the usual time is that of the last jobs, as the trial's is.
    const bool is_first = habit.left >= kJobsOfTrial;
    least = is_first || least == 0 ? seconds : std::min(least, seconds);
    if (--habit.left > 0) return;
    if (habit.trial == 0)
        begin_trial(habit);
    else
        end_trial(habit);
}

void HelperCount::begin_trial(Habit& habit) const {
    if (!has_level(habit.level + habit.direction)) habit.direction = -habit.direction;
    habit.trial = has_level(habit.level + habit.direction) ? habit.direction : 0;
    habit.left = kJobsOfTrial;
}

void HelperCount::end_trial(Habit& habit) const {
    const double limit = habit.trial > 0 ? kGain : kAlike;
    if (habit.tried <= limit * habit.usual) {
        habit.level += habit.trial;
        habit.usual = habit.tried;
        habit.pause = kSoonest;
        habit.left = kJobsOfTrial;  // the next step in this direction may gain, too
    } else {
        habit.direction = -habit.direction;
        habit.left = habit.pause;
        habit.pause = std::min(2 * habit.pause, kLatest);
    }
    habit.trial = 0;
}

}  // namespace pccl::sys
