// SPDX-License-Identifier: Apache-2.0

// Durations, clocks and deadlines of waits.
//
// Every wait of the library has a deadline: a point on the monotonic clock. "Never" is a valid one.
// Code that depends on time takes a Clock, so that tests can control it.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include <pccl/export.h>

namespace pccl {

/// Length of time, in nanoseconds.
using Duration = std::chrono::nanoseconds;
/// Point on the monotonic clock of this host.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// Source of time. Thread-safe.
class PCCL_API Clock {
   public:
    virtual ~Clock() = default;
    /// Returns the present time.
    [[nodiscard]] virtual TimePoint now() const = 0;
    /// Returns after `duration` has passed.
    virtual void sleep_for(Duration duration) const = 0;
};

/// Returns CLOCK_MONOTONIC: jumps of the wall clock do not affect it. The clock is never destroyed.
[[nodiscard]] PCCL_API const Clock& system_clock();

/// Point in time at which a wait ends without success. A plain value.
class Deadline {
   public:
    /// Returns a deadline that never passes.
    static Deadline never() { return Deadline(TimePoint::max()); }
    /// Returns a deadline after `timeout`; a negative or huge timeout means never.
    static Deadline after(Duration timeout, const Clock& clock = system_clock()) {
        return from(clock.now(), timeout);
    }
    /// Returns a deadline `timeout` after `now`; a negative or huge timeout means never.
    static Deadline from(TimePoint now, Duration timeout) {
        const bool unbounded = timeout < Duration::zero() || timeout > TimePoint::max() - now;
        return unbounded ? never() : Deadline(now + timeout);
    }

    /// Returns a deadline at the same time, which also passes once another thread sets `cancelled`.
    /// A wait detects that at its next check. `cancelled` must outlive the deadline.
    [[nodiscard]] Deadline unless(const std::atomic<bool>& cancelled) const {
        Deadline deadline(at_);
        deadline.cancelled_ = &cancelled;
        return deadline;
    }

    /// Returns this deadline, but at most `longest` from now.
    [[nodiscard]] Deadline within(Duration longest) const {
        Deadline sooner = remaining() < longest ? *this : after(longest);
        sooner.cancelled_ = cancelled_;
        return sooner;
    }

    /// Returns whether the deadline never passes by itself; it may still be cancelled.
    [[nodiscard]] bool is_never() const { return at_ == TimePoint::max(); }
    /// Returns whether the time has come, or the deadline is cancelled.
    [[nodiscard]] bool passed(const Clock& clock = system_clock()) const {
        return is_cancelled() || (!is_never() && clock.now() >= at_);
    }
    /// Returns the remaining time: zero once passed, Duration::max() for never.
    [[nodiscard]] Duration remaining(const Clock& clock = system_clock()) const {
        if (is_cancelled()) return Duration::zero();
        if (is_never()) return Duration::max();
        const TimePoint now = clock.now();
        return now >= at_ ? Duration::zero() : at_ - now;
    }

    /// Returns how long to wait before the next check: at most 50 ms of remaining(), because a
    /// cancellation wakes nobody.
    [[nodiscard]] Duration slice() const {
        return std::min<Duration>(remaining(), std::chrono::milliseconds(50));
    }

   private:
    explicit Deadline(TimePoint at) : at_(at) {}
    [[nodiscard]] bool is_cancelled() const {
        return cancelled_ != nullptr && cancelled_->load(std::memory_order_relaxed);
    }

    TimePoint at_;
    const std::atomic<bool>* cancelled_ = nullptr;
};

}  // namespace pccl
