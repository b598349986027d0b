// SPDX-License-Identifier: Apache-2.0

// Health of a path: whether sent bytes arrive.
#pragma once

#include <chrono>

#include <pccl/deadline.h>

namespace pccl::nccl {

/// Verdict about a path that has bytes in flight.
enum class PathVerdict {
    kWell,
    kSilent,  // it has carried nothing for a moment: other paths should take its pieces
    kLost,    // it has carried nothing for as long as a host may be silent
};

/// A peer that does not read is not silent: its host answers.
class PathHealth {
   public:
    /// `timeout` is how long a host may be silent.
    explicit PathHealth(std::chrono::milliseconds timeout) : timeout_(timeout) {}

    /// Counts progress.
    void progressed(TimePoint now) {
        moved_ = now;
        silent_since_ = TimePoint::max();
    }
    /// Returns whether it is time for another check().
    [[nodiscard]] bool is_due(TimePoint now) const;
    /// Returns the verdict; makes system calls.
    PathVerdict check(int socket, TimePoint now);
    [[nodiscard]] bool is_silent() const { return silent_since_ != TimePoint::max(); }

   private:
    std::chrono::milliseconds timeout_;
    TimePoint moved_{};
    TimePoint checked_{};
    TimePoint silent_since_ = TimePoint::max();
};

}  // namespace pccl::nccl
