// Operations that are done, for a thread of Python's that calls what users want called.
//
// Whoever finishes an operation must not take the GIL, and so cannot call Python.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

#include "csrc/base/unique_fd.h"

namespace pccl::bindings {

class DoneQueue {
   public:
    DoneQueue();

    /// An eventfd, which can be read while there are numbers to take. Owned by this.
    [[nodiscard]] int descriptor() const { return fd_.get(); }
    /// On any thread, without the GIL.
    void put(std::uint64_t number);
    /// All numbers since the last call, in the order in which they came.
    [[nodiscard]] std::vector<std::uint64_t> take();

   private:
    const UniqueFd fd_;
    std::mutex mutex_;
    std::vector<std::uint64_t> numbers_;  // guarded by mutex_
};

}  // namespace pccl::bindings
