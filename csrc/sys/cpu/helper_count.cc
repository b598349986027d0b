// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/helper_count.h"

#include <algorithm>
#include <bit>

#include "csrc/base/log/log.h"

namespace pccl::sys {

HelperCount::HelperCount(int most, std::string_view what) : most_(std::max(most, 0)), what_(what) {}

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

void HelperCount::record(std::size_t bytes, Duration worked, Duration waited) {
    if (most_ == 0 || bytes < kFewestBytes) return;
    Habit& habit = habits_[size_class(bytes)];
    const double work = std::chrono::duration<double>(worked).count();
    const double whole = work + std::chrono::duration<double>(waited).count();
    const double seconds = work / static_cast<double>(bytes);
    const double busy = whole > 0 ? work / whole : 1;
    // Before a trial, the usual time is that of the last jobs, as the trial's is.
    const bool is_first = habit.left >= kJobsOfTrial;
    double& least = habit.trial == 0 ? habit.usual : habit.tried;
    least = is_first ? seconds : std::min(least, seconds);
    if (habit.trial == 0) habit.busy = is_first ? busy : std::max(habit.busy, busy);
    if (--habit.left > 0) return;
    if (habit.trial == 0)
        begin_trial(habit);
    else
        end_trial(habit);
}

void HelperCount::begin_trial(Habit& habit) const {
    habit.left = kJobsOfTrial;
    if (habit.busy < kIdle && habit.level > 0) {
        set_level(habit, habit.level - 1, habit.usual);
        return;
    }
    const auto is_worth_a_trial = [&](int direction) {
        return has_level(habit.level + direction) && (direction < 0 || habit.busy >= kBusy);
    };
    if (!is_worth_a_trial(habit.direction)) habit.direction = -habit.direction;
    habit.trial = is_worth_a_trial(habit.direction) ? habit.direction : 0;
}

void HelperCount::end_trial(Habit& habit) const {
    const int trial = habit.trial;
    habit.trial = 0;
    if (habit.tried <= (trial > 0 ? kGain : kAlike) * habit.usual) {
        set_level(habit, habit.level + trial, habit.tried);
        habit.pause = kSoonest;
        habit.left = kJobsOfTrial;  // the next step in this direction may gain, too
    } else {
        habit.direction = -habit.direction;
        habit.left = habit.pause;
        habit.pause = std::min(2 * habit.pause, kLatest);
    }
}

void HelperCount::set_level(Habit& habit, int level, double seconds) const {
    constexpr double kMicrosecondsOfMebibyte = 1e6 * (1 << 20);
    log(LogLevel::kDebug, "long ", what_, " have ", helpers_at(level), " helper threads, not ",
        helpers_at(habit.level), ": ", seconds * kMicrosecondsOfMebibyte,
        " us of work for a MiB, not ", habit.usual * kMicrosecondsOfMebibyte, "; ",
        100 * habit.busy, " % of the time was work");
    habit.level = level;
    habit.usual = seconds;
}

}  // namespace pccl::sys
