// The threads that run callbacks at the moment.
//
// What a callback holds goes when it has run. That may need more of the process than the library
// does, such as Python's interpreter: whoever is about to end it waits here first.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"

namespace pccl {

class PCCL_API CallbackGuard {
   public:
    /// This thread is about to run callbacks.
    void enter();
    /// It has run them.
    void leave();
    /// Waits until no other thread runs callbacks; false when `deadline` has passed
    /// before.
    [[nodiscard]] bool await_others(Deadline deadline);

   private:
    std::mutex mutex_;
    std::condition_variable left_;
    std::vector<std::thread::id> threads_;  // guarded by mutex_; one may be there twice
};

}  // namespace pccl
