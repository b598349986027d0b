// SPDX-License-Identifier: Apache-2.0
#include "csrc/comm/diagnosis/question_bell.h"

namespace pccl::comm {

void QuestionBell::ring() {
    {
        const std::lock_guard lock(mutex_);
        ++rings_;
    }
    rung_.notify_all();
}

std::uint64_t QuestionBell::rings() const {
    const std::lock_guard lock(mutex_);
    return rings_;
}

void QuestionBell::rest(std::uint64_t rings, Duration longest) {
    std::unique_lock lock(mutex_);
    rung_.wait_for(lock, longest, [&] { return rings_ > rings; });
}

QuestionBell& question_bell() {
    // Never destroyed: threads answer other ranks, and ring it, during process exit.
    static auto* const bell = new QuestionBell;
    return *bell;
}

}  // namespace pccl::comm
