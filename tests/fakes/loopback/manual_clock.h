// SPDX-License-Identifier: Apache-2.0

// Clock that moves only when the test moves it.
#pragma once

#include <atomic>

#include <pccl/deadline.h>

namespace pccl::transport::loopback {

/// Clock for tests. Thread-safe. Sleeping moves the clock instead of waiting.
class ManualClock final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override { return TimePoint(Duration(now_.load())); }
    void sleep_for(Duration duration) const override { now_ += duration.count(); }
    void advance(Duration duration) { sleep_for(duration); }

   private:
    mutable std::atomic<Duration::rep> now_{0};
};

}  // namespace pccl::transport::loopback
