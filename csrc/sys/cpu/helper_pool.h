// SPDX-License-Identifier: Apache-2.0

// Threads that help others with long work on memory, on cores that are idle otherwise.
//
// A caller divides its work and takes part in it. Helpers sleep between jobs. A helper that has not
// begun when the caller is through is not waited for, so a busy machine costs at most the part that
// a helper has begun.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <pccl/export.h>
#include "csrc/base/fork.h"
#include "csrc/base/threads/background_thread.h"
#include "csrc/sys/host.h"

namespace pccl::sys {

/// Helper threads of a process. Thread-safe.
class PCCL_API HelperPool {
   public:
    /// Maximum number of threads.
    static constexpr int kMost = 31;
    /// Work of one thread: 0 is the caller's, and helpers have 1 to the number of helpers. It must
    /// not throw.
    using Work = std::function<void(int worker)>;

    HelperPool() = default;
    ~HelperPool();
    HelperPool(const HelperPool&) = delete;
    HelperPool& operator=(const HelperPool&) = delete;

    /// Returns the pool of this process, which lives as long as the process.
    static HelperPool& of_process();

    /// Calls `work` on this thread, and concurrently on up to `helpers` threads that are idle.
    /// Returns when all calls have returned. A child of fork() has no helpers. Threads that are
    /// created for this call run on `cores`, where there are any.
    void run(int helpers, const CoreSet& cores, const Work& work);

   private:
    struct Job {
        const Work* work = nullptr;
        int running = 0;  // helpers that have begun and have not returned
        std::condition_variable returned;
    };
    struct Helper {
        Job* job = nullptr;
        int worker = 0;
        bool is_ended = false;
        std::condition_variable offered;
        std::unique_ptr<BackgroundThread> thread;
    };

    std::vector<Helper*> offer(Job& job, int helpers, const CoreSet& cores);
    Helper* new_helper(const CoreSet& cores);
    void withdraw(const Job& job, const std::vector<Helper*>& asked);
    void help(Helper& helper, const CoreSet& cores);

    const ForkMark made_in_;
    std::mutex mutex_;
    std::vector<std::unique_ptr<Helper>> helpers_;  // guarded by mutex_; so are all jobs
    std::vector<Helper*> idle_;
};

}  // namespace pccl::sys
