// The error of a link: set once, from any thread, read on every call at the price of one load.
#pragma once

#include <atomic>
#include <mutex>

#include "csrc/base/status.h"

namespace pccl::transport {

class PCCL_API StickyStatus {
   public:
    [[nodiscard]] bool is_set() const { return set_.load(std::memory_order_acquire); }
    [[nodiscard]] Status get() const;
    /// The first one stays, and is returned.
    Status set(const Status& status);

   private:
    std::atomic<bool> set_{false};
    mutable std::mutex mutex_;
    Status status_;
};

}  // namespace pccl::transport
