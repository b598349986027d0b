// Time: the only place that reads a clock or sleeps.
//
// Code that decides by time takes a Clock, so that tests can drive it by hand (ManualClock in
// transport/loopback). A Deadline is a point on a clock; "never" is a valid deadline.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>

#include "csrc/base/export.h"

namespace pccl {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

class PCCL_API Clock {
   public:
    virtual ~Clock() = default;
    [[nodiscard]] virtual TimePoint now() const = 0;
    virtual void sleep_for(Duration duration) const = 0;
};

/// CLOCK_MONOTONIC: jumps of the wall clock do not disturb it.
[[nodiscard]] PCCL_API const Clock& system_clock();

/// Milliseconds since the Unix epoch, for records people read.
[[nodiscard]] PCCL_API long long wall_clock_ms();

class Deadline {
   public:
    static Deadline never() { return Deadline(TimePoint::max()); }
    /// A negative or huge timeout means never.
    static Deadline after(Duration timeout, const Clock& clock = system_clock()) {
        return from(clock.now(), timeout);
    }
    static Deadline from(TimePoint now, Duration timeout) {
        const bool unbounded = timeout < Duration::zero() || timeout > TimePoint::max() - now;
        return unbounded ? never() : Deadline(now + timeout);
    }

    /// The same deadline, which also passes once another thread sets `cancelled`. Waits notice it
    /// at their next look.
    [[nodiscard]] Deadline unless(const std::atomic<bool>& cancelled) const {
        Deadline deadline(at_);
        deadline.cancelled_ = &cancelled;
        return deadline;
    }

    /// The same, but at most `longest` from now.
    [[nodiscard]] Deadline within(Duration longest) const {
        Deadline sooner = remaining() < longest ? *this : after(longest);
        sooner.cancelled_ = cancelled_;
        return sooner;
    }

    [[nodiscard]] bool is_never() const { return at_ == TimePoint::max(); }
    [[nodiscard]] bool passed(const Clock& clock = system_clock()) const {
        return is_cancelled() || (!is_never() && clock.now() >= at_);
    }
    /// Zero once passed; Duration::max() for never.
    [[nodiscard]] Duration remaining(const Clock& clock = system_clock()) const {
        if (is_cancelled()) return Duration::zero();
        if (is_never()) return Duration::max();
        const TimePoint now = clock.now();
        return now >= at_ ? Duration::zero() : at_ - now;
    }

    /// How long to wait before the next look: remaining(), in slices, for nobody wakes those who
    /// wait when another thread cancels.
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
