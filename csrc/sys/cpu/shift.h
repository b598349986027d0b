// SPDX-License-Identifier: Apache-2.0

// Threads that make progress on the same work at one time, until none of them has found anything
// to do for a while.
#pragma once

#include <atomic>
#include <cstddef>

#include <pccl/deadline.h>
#include "csrc/sys/cpu/relax.h"

namespace pccl::sys {

/// Shift of some threads. Thread-safe.
class Shift {
   public:
    /// Lasts at most for `longest`, and the round that each thread has begun by then.
    explicit Shift(Duration longest) : end_(system_clock().now() + longest) {}

    /// Adds the calling thread, and returns its number.
    [[nodiscard]] std::size_t join() { return workers_.fetch_add(1); }
    /// Returns the number of threads that have joined.
    [[nodiscard]] std::size_t workers() const { return workers_.load(); }
    /// Ends the shift: threads do not continue after their present round.
    void end() { is_over_ = true; }
    [[nodiscard]] bool has_moved() const { return has_moved_.load(); }
    /// Records whether a thread's round moved anything, and whether it left anything to do. Returns
    /// whether the thread makes another round.
    [[nodiscard]] bool goes_on(bool moved, bool is_any_left) {
        const TimePoint now = system_clock().now();
        if (moved) {
            has_moved_ = true;
            last_move_ = now;
        }
        if (is_over_ || now > end_ || (!moved && !is_any_left)) return false;
        if (moved) return true;
        if (now > last_move_.load() + kIdleTimeout) return false;
        relax();
        return true;
    }

   private:
    // Threads look for more so long after the last progress of any of them: longer than a peer
    // takes to refill a socket's buffer, and shorter than a futex's wake-up costs.
    static constexpr Duration kIdleTimeout = std::chrono::microseconds(50);

    const TimePoint end_;
    std::atomic<TimePoint> last_move_{system_clock().now()};
    std::atomic<std::size_t> workers_{0};
    std::atomic<bool> is_over_{false};
    std::atomic<bool> has_moved_{false};
};

}  // namespace pccl::sys
