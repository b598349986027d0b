// SPDX-License-Identifier: Apache-2.0

// State of a child of fork(): it has all memory of its parent, but none of the threads.
//
// The unfinished work of such a thread stays unfinished in the child: locks that it held,
// containers that it was changing. So a child neither uses nor destroys its parent's objects. Its
// calls to them return an error (ForkMark), and it leaks the objects that it drops (LeaveToParent);
// their descriptors refer to nothing (unique_fd.h). A child also needs the objects that a process
// has only once, and finds those consistent (hold_while_forking()).
#pragma once

#include <mutex>

#include <pccl/export.h>

namespace pccl {

/// Mark of the process in which an object was made. A check is cheap enough for every operation.
class PCCL_API ForkMark {
   public:
    ForkMark();
    /// Returns whether this process is a child of the one that made the mark.
    [[nodiscard]] bool is_child() const;

   private:
    int forks_;  // number of forks before the mark
};

/// Deleter for smart pointers: deletes only in the process that made it.
class LeaveToParent {
   public:
    template <typename T>
    void operator()(T* object) const {
        if (!made_in_.is_child()) delete object;
    }

   private:
    ForkMark made_in_;
};

/// Makes fork() hold `mutex` from now on, so that a child finds it free, and its data consistent.
/// `mutex` must live as long as the process; a thread that holds one such mutex takes no other.
PCCL_API void hold_while_forking(std::mutex& mutex);

}  // namespace pccl
