// SPDX-License-Identifier: Apache-2.0

// The error of a link: any thread sets it once; a read costs one load.
#pragma once

#include <atomic>
#include <mutex>

#include <pccl/status.h>

namespace pccl::transport {

class PCCL_API StickyStatus {
   public:
    [[nodiscard]] bool is_set() const { return set_.load(std::memory_order_acquire); }
    [[nodiscard]] Status get() const;
    /// Sets the error unless one is set, and returns the first one.
    Status set(const Status& status);

   private:
    std::atomic<bool> set_{false};
    mutable std::mutex mutex_;
    Status status_;
};

}  // namespace pccl::transport
