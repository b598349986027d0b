// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/helper_count.h"

#include <algorithm>
#include <bit>

#include "csrc/base/log/log.h"

namespace pccl::sys {

HelperCount::HelperCount(int most, std::string_view what) : most_(std::max(most, 0)), what_(what) {
    top_ = static_cast<int>(std::bit_width(static_cast<unsigned>(most_)));
    for (Habit& habit : habits_) habit.level = top_;
}

std::size_t HelperCount::size_class(std::size_t bytes) {
    const auto doublings = static_cast<std::size_t>(std::bit_width(bytes / kFewestBytes)) - 1;
    return std::min(doublings, kSizes - 1);
}

int HelperCount::helpers_at(int level) const { return std::min((1 << level) - 1, most_); }

bool HelperCount::tries_all(const Habit& habit) const {
    return habit.job < kJobsOfTrial && habit.level < top_;
}

int HelperCount::next(std::size_t bytes) const {
    if (most_ == 0 || bytes < kFewestBytes) return 0;
    const Habit& habit = habits_[size_class(bytes)];
    if (tries_all(habit)) return most_;
    return helpers_at(habit.is_trial ? habit.level - 1 : habit.level);
}

void HelperCount::record(std::size_t bytes, Duration taken) {
    if (most_ == 0 || bytes < kFewestBytes) return;
    Habit& habit = habits_[size_class(bytes)];
    const double seconds =
        std::chrono::duration<double>(taken).count() / static_cast<double>(bytes);
    if (tries_all(habit))
        record_with_all(habit, seconds);
    else if (habit.is_trial)
        record_with_fewer(habit, seconds);
    else
        record_usual(habit, seconds);
    habit.job = (habit.job + 1) % kPeriod;
}

void HelperCount::record_with_all(Habit& habit, double seconds) const {
    habit.is_trial = false;
    habit.left = std::max(habit.left, kJobsOfTrial);
    habit.tried = habit.job == 0 ? seconds : std::min(habit.tried, seconds);
    if (habit.job + 1 < kJobsOfTrial || habit.tried > kGain * habit.usual) return;
    set_level(habit, top_);
    habit.left = habit.pause = kSoonest;
}

void HelperCount::record_usual(Habit& habit, double seconds) const {
    // The usual time is that of the jobs right before the trial.
    habit.usual = habit.left >= kJobsOfTrial ? seconds : std::min(habit.usual, seconds);
    if (--habit.left > 0) return;
    habit.is_trial = habit.level > 0;
    habit.left = habit.is_trial ? kJobsOfTrial : kSoonest;
}

void HelperCount::record_with_fewer(Habit& habit, double seconds) const {
    habit.tried = habit.left == kJobsOfTrial ? seconds : std::min(habit.tried, seconds);
    if (--habit.left > 0) return;
    habit.is_trial = false;
    if (habit.tried <= kAlike * habit.usual) {
        set_level(habit, habit.level - 1);
        habit.pause = kSoonest;
        habit.left = kJobsOfTrial;  // even fewer may do
    } else {
        habit.left = habit.pause;
        habit.pause = std::min(2 * habit.pause, kLatest);
    }
}

void HelperCount::set_level(Habit& habit, int level) const {
    constexpr double kMicrosecondsOfMebibyte = 1e6 * (1 << 20);
    log(LogLevel::kDebug, "long ", what_, " have ", helpers_at(level), " helper threads, not ",
        helpers_at(habit.level), ": ", habit.tried * kMicrosecondsOfMebibyte, " us a MiB, not ",
        habit.usual * kMicrosecondsOfMebibyte);
    habit.level = level;
    habit.usual = habit.tried;
}

}  // namespace pccl::sys
