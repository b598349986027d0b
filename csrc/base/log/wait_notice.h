// SPDX-License-Identifier: Apache-2.0

// Notices about long waits, before the user wonders about the cause.
#pragma once

#include <atomic>
#include <chrono>
#include <string>

#include <pccl/deadline.h>
#include <pccl/export.h>

namespace pccl {

/// Limiter for waits of one kind, which may follow one another: a job whose ranks are late at every
/// step must not fill its log. Thread-safe.
class PCCL_API WaitNotice {
   public:
    static constexpr Duration kFirstNotice = std::chrono::seconds(5);
    static constexpr Duration kFirstGap = std::chrono::minutes(1);
    static constexpr Duration kLongestGap = std::chrono::hours(1);

    explicit WaitNotice(const Clock& clock = system_clock()) : clock_(clock) {}

    /// Returns whether to log a notice now: true for one caller, once `waited` is kFirstNotice, but
    /// not before a gap has passed since the last time; gaps grow.
    [[nodiscard]] bool is_due(Duration waited);

   private:
    const Clock& clock_;
    std::atomic<TimePoint> next_{TimePoint::min()};
    std::atomic<Duration> gap_{kFirstGap};
};

/// Returns "5 s": whole seconds, for messages.
[[nodiscard]] PCCL_API std::string in_seconds(Duration duration);

}  // namespace pccl
