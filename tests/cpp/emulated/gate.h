// SPDX-License-Identifier: Apache-2.0

// Holds a thread up at one moment of what it does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace pccl {

class Gate {
   public:
    /// Nobody is held for longer than that.
    explicit Gate(std::chrono::milliseconds longest) : longest_(longest) {}

    /// Waits until it is open; once it has waited in vain, it is.
    void pass() {
        std::unique_lock lock(mutex_);
        has_entered_ = true;
        changed_.notify_all();
        changed_.wait_for(lock, longest_, [this] { return is_open_; });
        is_open_ = true;
    }
    /// Returns when somebody has come to pass, or nobody did in time.
    void await_entered() {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, std::chrono::seconds(20), [this] { return has_entered_; });
    }
    void open() {
        const std::lock_guard lock(mutex_);
        is_open_ = true;
        changed_.notify_all();
    }

   private:
    const std::chrono::milliseconds longest_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool has_entered_ = false;
    bool is_open_ = false;
};

}  // namespace pccl
