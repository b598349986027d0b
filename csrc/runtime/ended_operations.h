// SPDX-License-Identifier: Apache-2.0

// Ended operations of a group with callbacks, which run without the group's lock.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <pccl/deadline.h>
#include "csrc/base/scope_exit.h"
#include "csrc/base/threads/callback_guard.h"
#include "csrc/runtime/operation.h"

namespace pccl::runtime {

class EndedOperations {
   public:
    // Under the lock:

    /// Adds an operation whose status is set.
    void add(std::shared_ptr<Operation> operation) { unreported_.push_back(std::move(operation)); }
    [[nodiscard]] bool is_empty() const { return unreported_.empty(); }
    [[nodiscard]] std::size_t size() const { return unreported_.size(); }
    /// Releases the lock, and runs the callbacks.
    void report(std::unique_lock<std::mutex> lock) {
        if (unreported_.empty()) return;
        auto operations = std::exchange(unreported_, {});
        callback_guard_.enter();
        const ScopeExit left([this] { callback_guard_.leave(); });
        lock.unlock();
        for (const auto& operation : operations) operation->notify();
        operations.clear();
    }

    // Thread-safe:

    /// Waits until no other thread runs callbacks. Returns false when `deadline` passes first.
    [[nodiscard]] bool await_others(Deadline deadline) {
        return callback_guard_.await_others(deadline);
    }

   private:
    std::vector<std::shared_ptr<Operation>> unreported_;
    CallbackGuard callback_guard_;
};

}  // namespace pccl::runtime
