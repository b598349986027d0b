// SPDX-License-Identifier: Apache-2.0

// Health of a path: whether sent bytes arrive.
#pragma once

#include <chrono>
#include <cstdint>

#include <pccl/deadline.h>
#include <pccl/export.h>

namespace pccl::transport::tcp {

/// Verdict about a path that has bytes in flight.
enum class PathVerdict {
    kWell,
    kSilent,  // it has carried nothing for a moment: other paths should take its pieces
    kLost,    // it has carried nothing for as long as a host may be silent
};

/// A peer that does not read is not silent: its host answers.
class PCCL_API PathHealth {
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
    /// Returns the verdict; makes system calls. `others_answer`: other paths to this host are well,
    /// so that a shorter silence counts.
    PathVerdict check(int socket, TimePoint now, bool others_answer = false);
    /// Returns whether the peer's host had answered when last checked, or had nothing to answer.
    [[nodiscard]] bool answers(TimePoint now) const;
    [[nodiscard]] bool is_silent() const { return silent_since_ != TimePoint::max(); }
    [[nodiscard]] TimePoint silent_since() const { return silent_since_; }

   private:
    /// Returns whether the peer's host should have answered, and has not.
    bool is_unanswered(int socket, TimePoint now, bool others_answer);

    std::chrono::milliseconds timeout_;
    TimePoint moved_{};
    TimePoint checked_{};
    std::uint64_t acknowledged_ = 0;  // bytes, when last checked
    TimePoint answered_{};            // when it was found to have grown, or nothing in flight
    bool has_in_flight_ = false;
    bool is_first_ = true;  // nothing is known from earlier checks
    TimePoint silent_since_ = TimePoint::max();
};

}  // namespace pccl::transport::tcp
