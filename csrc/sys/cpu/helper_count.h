// SPDX-License-Identifier: Apache-2.0

// Choice of how many threads help with one kind of work, by its measured speed.
//
// More helpers are used only while they gain, and fewer as soon as these are as fast. The choice is
// tried again and again, because other processes come and go. A trial takes two jobs, and counts
// the faster one. What counts is the time in which the caller works: a job may also wait for other
// processes, whose speed no helper changes. Where most of the time is such a wait, helpers are
// given up.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include <pccl/deadline.h>
#include <pccl/export.h>

namespace pccl::sys {

/// One thread at a time.
class PCCL_API HelperCount {
   public:
    /// Has no helpers.
    HelperCount() = default;
    /// At most `most` helpers. `what` names the work in the log, at the level debug.
    HelperCount(int most, std::string_view what);

    /// Returns the number of helpers for the next job of so many bytes.
    [[nodiscard]] int next(std::size_t bytes) const;
    /// Records how long the caller has worked on a job of next() helpers, and waited for others.
    void record(std::size_t bytes, Duration worked, Duration waited = {});

    /// Jobs of fewer bytes have no helpers.
    static constexpr std::size_t kFewestBytes = std::size_t{512} << 10;
    /// A job with more helpers must take at most this part of the time.
    static constexpr double kGain = 0.92;
    /// A job with fewer helpers may take up to this many times as long.
    static constexpr double kAlike = 1.03;
    /// Helpers are added while the caller works for at least this part of the time.
    static constexpr double kBusy = 0.6;
    /// Helpers are given up while the caller works for less than this part.
    static constexpr double kIdle = 0.25;
    /// Jobs between two trials: from the first number on, doubled after each trial in vain.
    static constexpr int kSoonest = 8;
    static constexpr int kLatest = 64;

   private:
    static constexpr std::size_t kSizes = 8;  // from kFewestBytes on, by powers of two
    static constexpr int kLevels = 6;         // 0, 1, 3, 7, 15 and 31 helpers
    static constexpr int kJobsOfTrial = 2;

    /// State for jobs of one size. Seconds are those of work for a byte.
    struct Habit {
        int level = 0;
        int trial = 0;            // -1, 0 or 1: levels that the present trial adds
        int direction = 1;        // of the next trial
        int left = kJobsOfTrial;  // jobs until the trial begins or ends
        int pause = kSoonest;     // jobs before the trial after the next one in vain
        double usual = 0;         // least seconds of the last jobs at this level
        double tried = 0;         // least seconds of the present trial
        double busy = 0;          // most of the parts of the last jobs that were work
    };

    [[nodiscard]] static std::size_t size_class(std::size_t bytes);
    [[nodiscard]] int helpers_at(int level) const;
    [[nodiscard]] bool has_level(int level) const;
    void begin_trial(Habit& habit) const;
    void end_trial(Habit& habit) const;
    void set_level(Habit& habit, int level, double seconds) const;

    int most_ = 0;
    std::string_view what_;
    std::array<Habit, kSizes> habits_{};
};

}  // namespace pccl::sys
