// Rings when a rank asks this process how it fares: who rests between questions of its own may
// have news to ask for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "csrc/base/clock.h"

namespace pccl::comm {

class QuestionBell {
   public:
    void ring();
    [[nodiscard]] std::uint64_t rings() const;
    /// Until it has rung more often than that, but no longer than `longest`.
    void rest(std::uint64_t rings, Duration longest);

   private:
    mutable std::mutex mutex_;
    std::condition_variable rung_;
    std::uint64_t rings_ = 0;
};

/// Of all groups of this process: one question too many costs little, and few are asked.
[[nodiscard]] QuestionBell& question_bell();

}  // namespace pccl::comm
