// SPDX-License-Identifier: Apache-2.0

// Registry of the threads that run callbacks at present.
//
// A callback's captures are destroyed after it has run. That may need more of the process than the
// library does, such as Python's interpreter: code that ends the interpreter waits here first.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include <pccl/deadline.h>
#include <pccl/export.h>

namespace pccl {

class PCCL_API CallbackGuard {
   public:
    /// Records that this thread is about to run callbacks.
    void enter();
    /// Records that this thread has run them.
    void leave();
    /// Waits until no other thread runs callbacks; returns false when `deadline` passes first.
    [[nodiscard]] bool await_others(Deadline deadline);

   private:
    std::mutex mutex_;
    std::condition_variable left_;
    std::vector<std::thread::id> threads_;  // guarded by mutex_; a thread may occur twice
};

}  // namespace pccl
