// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/cpu/shared_copy.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "csrc/base/ids.h"
#include "csrc/sys/cpu/streaming.h"

namespace pccl {
namespace {

// Reading the clock takes little time beside a write of this size.
constexpr std::size_t kTriedBytes = 16384;
// Extra seconds a byte for readers to fetch streamed bytes from memory instead of from a cache. The
// two ways differ by a large factor, so the value need not be exact: on servers it is 0.03 to 0.08
// ns.
constexpr double kFromMemory = 0.04e-9;
// Plain writing to lines in no cache takes up to this many times as long as streaming where it is
// the faster way in the long run; to lines in far caches it takes longer.
constexpr double kWorthAnAttempt = 3;

/// Returns the seconds that `write` takes, until its lines are written.
template <typename Write>
double seconds_of(const Clock& clock, const Write& write) {
    const TimePoint begin = clock.now();
    write();
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return std::chrono::duration<double>(clock.now() - begin).count();
}

}  // namespace

std::size_t SharedCopy::size_class(std::size_t bytes) {
    const auto doublings = static_cast<std::size_t>(std::bit_width(bytes / kFewestBytes)) - 1;
    return std::min(doublings, kSizes - 1);
}

bool SharedCopy::streams(std::size_t bytes) const {
    return bytes >= kFewestBytes && habits_[size_class(bytes)].streams;
}

void SharedCopy::copy(std::byte* dst, const std::byte* src, std::size_t bytes) {
    if (bytes < kFewestBytes || !kStreamsPastCaches) {
        if (bytes != 0) std::memcpy(dst, src, bytes);
        return;
    }
    Habit& habit = habits_[size_class(bytes)];
    std::size_t done = 0;
    if (habit.copies_left-- == 0) done = try_both(habit, dst, src, bytes);
    if (habit.streams)
        stream_bytes(dst + done, src + done, bytes - done);
    else
        std::memcpy(dst + done, src + done, bytes - done);
}

std::size_t SharedCopy::try_both(Habit& habit, std::byte* dst, const std::byte* src,
                                 std::size_t bytes) {
    const std::size_t part = std::min(kTriedBytes, bytes / 2) / kCacheLine * kCacheLine;
    // stream_bytes() comes first because it prefetches its source: memcpy() would wait for it at
    // first.
    const double streamed = seconds_of(*clock_, [&] { stream_bytes(dst, src, part); });
    const double plain = seconds_of(*clock_, [&] { std::memcpy(dst + part, src + part, part); });
    learn(habit, plain, streamed, kFromMemory * static_cast<double>(part));
    habit.copies_left = kCopiesPerTrial - 1;
    return 2 * part;
}

void SharedCopy::learn(Habit& habit, double plain, double streamed, double from_memory) {
    const bool is_slower = plain > streamed + from_memory;
    if (!is_slower) {
        habit.streams = false;
        habit.trials_lost = static_cast<std::uint8_t>(std::max(habit.trials_lost / 2, 1));
    } else if (!habit.streams) {
        habit.streams = true;
        habit.trials_left = habit.trials_lost;
        habit.trials_lost =
            static_cast<std::uint8_t>(std::min(2 * habit.trials_lost, kTrialsPerAttempt));
    } else if (habit.trials_left > 0) {
        --habit.trials_left;
    } else if (plain < kWorthAnAttempt * streamed) {
        habit.streams = false;
    }
}

}  // namespace pccl
