// SPDX-License-Identifier: Apache-2.0

// Timer of rare checks (deadline, signals) in a loop that always makes progress.
#pragma once

#include <pccl/deadline.h>

namespace pccl {

/// Counter of rounds: reading the clock takes longer than many of them.
class NowAndThen {
   public:
    static constexpr int kRounds = 16;  // between two readings of the clock

    explicit NowAndThen(Duration every, const Clock& clock = system_clock())
        : every_(every), clock_(clock) {}

    /// Returns true about once every `every`; call it in each round.
    [[nodiscard]] bool is_due() {
        if (++rounds_ % kRounds != 0) return false;
        const TimePoint now = clock_.now();
        if (last_ == TimePoint{}) last_ = now;
        if (now - last_ < every_) return false;
        last_ = now;
        return true;
    }

   private:
    const Duration every_;
    const Clock& clock_;
    TimePoint last_{};
    unsigned rounds_ = 0;
};

}  // namespace pccl
