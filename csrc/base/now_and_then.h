// When a loop in which something always moves looks at what is rare: its deadline, signals.
#pragma once

#include "csrc/base/clock.h"

namespace pccl {

/// Counts rounds, as the clock takes longer to read than many of them do.
class NowAndThen {
   public:
    static constexpr int kRounds = 16;  // between two looks at the clock

    explicit NowAndThen(Duration every, const Clock& clock = system_clock())
        : every_(every), clock_(clock) {}

    /// To be called in each round: true about every so long.
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
