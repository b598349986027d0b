// SPDX-License-Identifier: Apache-2.0

// The error of a link: any thread sets it once; a read costs one load.
#pragma once

#include <atomic>
#include <mutex>

#include <pccl/status.h>

namespace pccl::transport {

class StickyStatus {
   public:
    [[nodiscard]] bool is_set() const { return set_.load(std::memory_order_acquire); }
    [[nodiscard]] Status get() const {
        const std::lock_guard lock(mutex_);
        return status_;
    }
    /// Sets the error unless one is set, and returns the first one.
    Status set(const Status& status) {
        const std::lock_guard lock(mutex_);
        if (status_.is_ok()) status_ = status;
        set_.store(true, std::memory_order_release);
        return status_;
    }

   private:
    std::atomic<bool> set_{false};
    mutable std::mutex mutex_;
    Status status_;
};

}  // namespace pccl::transport
