// SPDX-License-Identifier: Apache-2.0

// Wakeup of threads that pause between status requests: a request from another rank means that it
// may have news.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include <pccl/deadline.h>

namespace pccl::comm {

class QuestionBell {
   public:
    void ring();
    [[nodiscard]] std::uint64_t rings() const;
    /// Waits until it has rung more often than `rings`, at most for `longest`.
    void rest(std::uint64_t rings, Duration longest);

   private:
    mutable std::mutex mutex_;
    std::condition_variable rung_;
    std::uint64_t rings_ = 0;
};

/// Returns the bell of all groups of this process. A superfluous request costs little, and requests
/// are few.
[[nodiscard]] QuestionBell& question_bell();

}  // namespace pccl::comm
