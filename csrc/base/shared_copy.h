// Copying into memory that other cores have read and will read again.
//
// Written plainly, its lines are first taken out of the readers' caches, which is quick where cores
// share a cache and slow where they do not. Written past the caches it takes the same wherever they
// are, and the readers fetch from memory. Between cores of one die plain writing takes half as long
// as streaming, between dies four times as long; and a hypervisor moves the cores of a virtual
// machine from the one to the other within seconds. So both are timed again and again, on the first
// bytes of what is to be copied anyway. Lines that went past the caches are in none when they are
// written again, plainly, which takes longer than if they had been written so before: where it does
// not take very much longer, plain writing is tried in earnest until the next trial.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "csrc/base/clock.h"

namespace pccl {

/// For one reader, or several that are equally far. One thread at a time; what was written is
/// visible to whoever sees what this thread writes afterwards.
class PCCL_API SharedCopy {
   public:
    explicit SharedCopy(const Clock& clock = system_clock()) : clock_(&clock) {}

    /// memcpy; fastest where dst is aligned to cache lines.
    void copy(std::byte* dst, const std::byte* src, std::size_t bytes);
    /// Whether pieces of so many bytes go past the caches now.
    [[nodiscard]] bool streams(std::size_t bytes) const;

    /// Less is copied plainly always.
    static constexpr std::size_t kFewestBytes = 4096;
    /// Of the copies of a size, one in so many times both ways.
    static constexpr int kCopiesPerTrial = 32;
    /// Of the trials that show plain writing slower, but not by much, at least one in so many leads
    /// to writing so until the next.
    static constexpr int kTrialsPerAttempt = 64;

   private:
    /// Of pieces of a size, for where the lines of small ones lie, those of large ones do not.
    struct Habit {
        std::uint8_t copies_left = 0;  // before the next trial
        bool streams = false;
        std::uint8_t trials_left = 0;  // before plain writing is tried in earnest again
        std::uint8_t trials_lost = 1;  // that pass then, should it be in vain
    };
    static constexpr std::size_t kSizes = 16;  // from kFewestBytes on, by powers of two

    [[nodiscard]] static std::size_t size_class(std::size_t bytes);
    /// Copies the first bytes, some each way; how many.
    std::size_t try_both(Habit& habit, std::byte* dst, const std::byte* src, std::size_t bytes);
    static void learn(Habit& habit, double plain, double streamed, double from_memory);

    const Clock* clock_;
    std::array<Habit, kSizes> habits_{};
};

}  // namespace pccl
