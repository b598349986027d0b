// A word in shared memory by which other processes see, without a system call, that this one lives.
//
// It is a robust futex (futex(2), set_robust_list(2)): a thread that holds it until its process
// ends leaves it to the kernel, which marks it when the thread dies, however that comes (a signal,
// an exec, a crash), and before anybody can learn of the end of the process in another way.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "csrc/base/export.h"

namespace pccl::sys {

/// Zero is its first state.
using LivenessWord = std::atomic<std::uint32_t>;
static_assert(LivenessWord::is_always_lock_free && sizeof(LivenessWord) == sizeof(std::uint32_t));

/// Whether the thread that holds the word lived when all loads before this call were made. False
/// says nothing: nobody holds it, or the holder has ended.
[[nodiscard]] inline bool is_held_by_the_living(const LivenessWord& word) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint32_t holder = word.load(std::memory_order_seq_cst);
    return holder != 0 && (holder & FUTEX_OWNER_DIED) == 0;
}

/// Holds a word as long as it lives, for the thread that makes and destroys it. Meanwhile the
/// kernel looks after no robust mutex that this thread locks.
class PCCL_API LivenessFutex {
   public:
    /// `word` is this sign's alone. Where the kernel knows no robust futexes it stays as it is.
    explicit LivenessFutex(LivenessWord& word);
    ~LivenessFutex();
    LivenessFutex(const LivenessFutex&) = delete;
    LivenessFutex& operator=(const LivenessFutex&) = delete;

   private:
    LivenessWord& word_;
    robust_list held_{};  // here, not beside the word: the kernel follows it
    robust_list_head list_{};
    robust_list_head* former_ = nullptr;
    std::size_t former_bytes_ = 0;
};

}  // namespace pccl::sys
