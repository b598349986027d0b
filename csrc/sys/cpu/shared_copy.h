// SPDX-License-Identifier: Apache-2.0

// Copies into memory that other cores have read and will read again.
//
// A plain write first takes its lines out of the readers' caches, which is quick where cores share
// a cache and slow where they do not. A write past the caches (streaming) takes equally long in
// both cases, but the readers then fetch from memory. Between cores of one die a plain write takes
// half as long as streaming, between dies four times as long. A hypervisor moves the cores of a
// virtual machine from one case to the other within seconds. So SharedCopy times both ways again
// and again, on the first bytes of the data that it has to copy anyway. Streamed lines are in no
// cache when they are next written plainly, which takes longer than it would after plain writes. So
// where plain writing is only moderately slower, SharedCopy uses it for all copies until the next
// trial.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <pccl/deadline.h>

namespace pccl {

/// Copier for one reader, or several that are equally far. One thread at a time. A later store of
/// this thread publishes the copied bytes.
class PCCL_API SharedCopy {
   public:
    explicit SharedCopy(const Clock& clock = system_clock()) : clock_(&clock) {}

    /// Copies like memcpy; fastest where dst is aligned to cache lines.
    void copy(std::byte* dst, const std::byte* src, std::size_t bytes);
    /// Returns whether pieces of `bytes` go past the caches now.
    [[nodiscard]] bool streams(std::size_t bytes) const;

    /// Smaller copies are always plain.
    static constexpr std::size_t kFewestBytes = 4096;
    /// One in this many copies of a size runs both ways.
    static constexpr int kCopiesPerTrial = 32;
    /// Among trials that show plain writing moderately slower, at least one in this many leads to
    /// plain writing until the next trial.
    static constexpr int kTrialsPerAttempt = 64;

   private:
    /// State for pieces of one size: lines of small pieces may be in caches where those of large
    /// ones are not.
    struct Habit {
        std::uint8_t copies_left = 0;  // copies before the next trial
        bool streams = false;
        std::uint8_t trials_left = 0;  // trials before the next attempt at plain writing
        std::uint8_t trials_lost = 1;  // value of trials_left after a failed attempt
    };
    static constexpr std::size_t kSizes = 16;  // from kFewestBytes on, by powers of two

    [[nodiscard]] static std::size_t size_class(std::size_t bytes);
    /// Copies the first bytes, some each way; returns their number.
    std::size_t try_both(Habit& habit, std::byte* dst, const std::byte* src, std::size_t bytes);
    static void learn(Habit& habit, double plain, double streamed, double from_memory);

    const Clock* clock_;
    std::array<Habit, kSizes> habits_{};
};

}  // namespace pccl
