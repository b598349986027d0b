// SPDX-License-Identifier: Apache-2.0

// Choice of how many threads help with one kind of work, by its measured speed.
//
// All helpers take part at first, and are given up while fewer are as fast: because they gain
// nothing, because other programs need the cores, or because another rank is the slowest anyway.
// From time to time all of them take part again, in the same jobs on all ranks: where ranks wait
// for each other, more helpers of one rank alone gain nothing. A trial takes two jobs, and counts
// the faster one.
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
    /// Records the time of a job of next() helpers.
    void record(std::size_t bytes, Duration taken);

    /// Jobs of fewer bytes have no helpers.
    static constexpr std::size_t kFewestBytes = std::size_t{512} << 10;
    /// Fewer helpers are used where a job then takes at most this many times as long.
    static constexpr double kAlike = 1.03;
    /// All helpers are used again where a job then takes at most this part of the time.
    static constexpr double kGain = 0.92;
    /// Jobs between two trials with fewer helpers: from the first number on, doubled after each
    /// trial in vain.
    static constexpr int kSoonest = 8;
    static constexpr int kLatest = 64;
    /// The first ones of this many jobs have all helpers.
    static constexpr int kPeriod = 32;

   private:
    static constexpr std::size_t kSizes = 8;  // from kFewestBytes on, by powers of two
    static constexpr int kJobsOfTrial = 2;

    /// State for jobs of one size. Levels are 0, 1, 3, 7 ... helpers, and all. Seconds are those of
    /// a byte.
    struct Habit {
        int level = 0;
        bool is_trial = false;  // with fewer helpers
        int left = kSoonest;    // jobs until that trial begins or ends
        int pause = kSoonest;   // jobs before the trial after the next one in vain
        int job = 0;            // in the period
        double usual = 0;       // least seconds of the last jobs at this level
        double tried = 0;       // least seconds of the present trial
    };

    [[nodiscard]] static std::size_t size_class(std::size_t bytes);
    [[nodiscard]] int helpers_at(int level) const;
    [[nodiscard]] bool tries_all(const Habit& habit) const;
    void record_with_all(Habit& habit, double seconds) const;
    void record_usual(Habit& habit, double seconds) const;
    void record_with_fewer(Habit& habit, double seconds) const;
    void set_level(Habit& habit, int level) const;

    int most_ = 0;
    int top_ = 0;  // level of all helpers
    std::string_view what_;
    std::array<Habit, kSizes> habits_{};
};

}  // namespace pccl::sys
