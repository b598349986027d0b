// What a child of fork() has of its parent: all memory, but none of the threads.
//
// Whatever such a thread was in the middle of stays so in the child: locks that it held, containers
// that it was changing. So a child neither uses nor destroys what its parent made. It gets an error
// where it calls something (ForkMark), and forgets what it drops (LeaveToParent); its descriptors
// stand for nothing (unique_fd.h). What a process has only once, a child needs as well, and finds
// whole (hold_while_forking()).
#pragma once

#include <mutex>

#include "csrc/base/export.h"

namespace pccl {

/// In which process something was made. Cheap enough for the path of every operation.
class PCCL_API ForkMark {
   public:
    ForkMark();
    /// Whether this process is a child of the one that made the mark.
    [[nodiscard]] bool is_child() const;

   private:
    int forks_;  // before the mark
};

/// For smart pointers: deletes in the process that made it, and nowhere else.
class LeaveToParent {
   public:
    template <typename T>
    void operator()(T* object) const {
        if (!made_in_.is_child()) delete object;
    }

   private:
    ForkMark made_in_;
};

/// From now on fork() waits for `mutex`, so that a child finds it free, and whole what it guards.
/// For what lives as long as the process; who holds one such mutex takes no other.
PCCL_API void hold_while_forking(std::mutex& mutex);

}  // namespace pccl
