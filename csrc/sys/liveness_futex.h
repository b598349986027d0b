// SPDX-License-Identifier: Apache-2.0

// Liveness word: a word in shared memory that shows other processes, without a system call, whether
// this one lives.
//
// It is a robust futex (futex(2), set_robust_list(2)). A thread holds it until its process ends.
// The kernel marks the word when the thread dies for any reason (a signal, an exec, a crash), and
// before another process can detect the end in another way.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include <pccl/export.h>

namespace pccl::sys {

/// The word; its initial state is zero.
using LivenessWord = std::atomic<std::uint32_t>;
static_assert(LivenessWord::is_always_lock_free && sizeof(LivenessWord) == sizeof(std::uint32_t));

/// Returns true if the thread that holds the word lived when all loads before this call were made.
/// False means that no thread holds it, or that the holder has ended.
[[nodiscard]] inline bool is_held_by_the_living(const LivenessWord& word) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint32_t holder = word.load(std::memory_order_seq_cst);
    return holder != 0 && (holder & FUTEX_OWNER_DIED) == 0;
}

/// Holder of a word for its own lifetime. One thread constructs and destroys it. Meanwhile the
/// kernel does not track robust mutexes that this thread locks.
class PCCL_API LivenessFutex {
   public:
    /// Takes a `word` that nothing else uses. The word is unchanged where the kernel does not
    /// support robust futexes.
    explicit LivenessFutex(LivenessWord& word);
    ~LivenessFutex();
    LivenessFutex(const LivenessFutex&) = delete;
    LivenessFutex& operator=(const LivenessFutex&) = delete;

   private:
    LivenessWord& word_;
    robust_list held_{};  // not beside the word: the kernel follows this list
    robust_list_head list_{};
    robust_list_head* former_ = nullptr;
    std::size_t former_bytes_ = 0;
};

}  // namespace pccl::sys
