// SPDX-License-Identifier: Apache-2.0

// A clock that moves only while somebody sleeps.
#pragma once

#include <chrono>

#include <pccl/deadline.h>

namespace pccl {

class HandClock final : public Clock {
   public:
    [[nodiscard]] TimePoint now() const override { return now_; }
    void sleep_for(Duration duration) const override { now_ += duration; }

   private:
    mutable TimePoint now_{std::chrono::hours(1)};
};

}  // namespace pccl
