// SPDX-License-Identifier: Apache-2.0

// Queue of finished operations, for a Python thread that runs users' callbacks.
//
// A thread that finishes an operation must not take the GIL, and so cannot call Python.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "csrc/base/unique_fd.h"

namespace pccl::bindings {

class DoneQueue {
   public:
    DoneQueue();

    /// Returns an eventfd, which is readable while numbers are queued. The queue owns it.
    [[nodiscard]] int descriptor() const { return fd_.get(); }
    /// Queues a number. Thread-safe; does not require the GIL.
    void put(std::uint64_t number);
    /// Returns all numbers since the last call, in order of arrival.
    [[nodiscard]] std::vector<std::uint64_t> take();

   private:
    const UniqueFd fd_;
    std::mutex mutex_;
    std::vector<std::uint64_t> numbers_;  // guarded by mutex_
};

}  // namespace pccl::bindings
