// The operations of a group that have ended and have callbacks, which run without the group's lock.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "csrc/base/callback_guard.h"
#include "csrc/base/clock.h"
#include "csrc/runtime/operation.h"

namespace pccl::runtime {

class EndedOperations {
   public:
    // Under the lock:

    /// Its status is set.
    void add(std::shared_ptr<Operation> operation) { untold_.push_back(std::move(operation)); }
    [[nodiscard]] bool is_empty() const { return untold_.empty(); }
    [[nodiscard]] std::size_t size() const { return untold_.size(); }
    /// Lets go of the lock, and runs their callbacks.
    void tell(std::unique_lock<std::mutex> lock);

    // From any thread:

    /// Waits until no other thread runs callbacks; false when `deadline` has passed before.
    [[nodiscard]] bool await_others(Deadline deadline) {
        return callback_guard_.await_others(deadline);
    }

   private:
    std::vector<std::shared_ptr<Operation>> untold_;
    CallbackGuard callback_guard_;
};

}  // namespace pccl::runtime
