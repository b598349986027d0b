// SPDX-License-Identifier: Apache-2.0

// Faults of a loopback fabric, determined by a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

#include <pccl/deadline.h>

namespace pccl::transport::loopback {

/// Plan of faults; the default has none. Probabilities are from 0 to 1, for each call.
///
/// Every stream draws from a sequence of its own, so that its faults do not depend on threads
/// elsewhere: the same calls on a stream meet the same faults.
struct FaultPlan {
    std::uint64_t seed = 0;
    double short_write = 0;  // a send takes only some of the bytes that fit
    double short_read = 0;   // a receiver gets only some of the bytes that arrived
    double reset = 0;  // a send fails, and the peer fails after it has read the bytes that had
                       // arrived
    /// Bytes arrive up to this much later. Each stream stays in order; streams overtake each other.
    Duration longest_delay = Duration::zero();
    // Faults of one-sided access (rma.h), for each copy; a reset and a delay apply to copies, too.
    double cut = 0;      // half of the bytes move, then the link fails
    double give_up = 0;  // the owner ends the registration during the copy and overwrites its
                         // memory
    /// This process dies at its dies_at_call-th call (the first is 1) of connect, send, flush,
    /// peek, receive, or at that copy; -1: none.
    int doomed_process = -1;
    std::uint64_t dies_at_call = 0;
};

/// Random faults of one direction of one stream.
class FaultDice {
   public:
    FaultDice(const FaultPlan& plan, std::uint64_t stream)
        : plan_(plan), random_(plan.seed * 0x9E3779B97F4A7C15ULL + stream) {}

    [[nodiscard]] bool resets() { return happens(plan_.reset); }
    [[nodiscard]] bool cuts() { return happens(plan_.cut); }
    [[nodiscard]] bool gives_up() { return happens(plan_.give_up); }
    /// Returns `count`, or a smaller number above 0.
    [[nodiscard]] std::size_t written(std::size_t count) {
        return some_of(count, plan_.short_write);
    }
    [[nodiscard]] std::size_t read(std::size_t count) { return some_of(count, plan_.short_read); }
    [[nodiscard]] Duration delay() {
        const auto longest = static_cast<std::uint64_t>(plan_.longest_delay.count());
        return longest == 0 ? Duration::zero()
                            : Duration(static_cast<Duration::rep>(random_() % longest));
    }

   private:
    bool happens(double probability) {
        constexpr double kScale = 1.0 / 9007199254740992.0;  // 2^-53
        return probability > 0 && static_cast<double>(random_() >> 11) * kScale < probability;
    }
    std::size_t some_of(std::size_t count, double probability) {
        return count > 1 && happens(probability) ? 1 + random_() % (count - 1) : count;
    }

    FaultPlan plan_;
    std::mt19937_64 random_;
};

}  // namespace pccl::transport::loopback
