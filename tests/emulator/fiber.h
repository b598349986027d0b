// SPDX-License-Identifier: Apache-2.0

// A function with a stack of its own, which its thread enters and which leaves where it waits.
#pragma once

#include <cstddef>

#include "tests/emulator/stacks.h"

#if defined(PCCL_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace pccl::emulator {

/// ThreadSanitizer takes each for a thread: entering and leaving orders nothing. What does, says
/// so.
class Fiber {
   public:
    Fiber() = default;
    Fiber(const Fiber&) = delete;
    Fiber& operator=(const Fiber&) = delete;

    /// The stack is the caller's. `function` never returns: it leaves at its end.
    void prepare(std::byte* stack, std::size_t bytes, void (*function)()) {
        own_.begin_with(stack, bytes, function);
        watched_.create();
    }
    void enter() {
        watched_.enter();
        Stack::change(home_, own_);
    }
    void leave() {
        watched_.leave();
        Stack::change(own_, home_);
    }

   private:
#if defined(PCCL_THREAD_SANITIZER)
    class Watched {
       public:
        ~Watched() {
            if (own_ != nullptr) __tsan_destroy_fiber(own_);
        }
        void create() {
            home_ = __tsan_get_current_fiber();
            own_ = __tsan_create_fiber(0);
        }
        void enter() const { __tsan_switch_to_fiber(own_, __tsan_switch_to_fiber_no_sync); }
        void leave() const { __tsan_switch_to_fiber(home_, __tsan_switch_to_fiber_no_sync); }

       private:
        void* home_ = nullptr;
        void* own_ = nullptr;
    };
#else
    struct Watched {
        void create() {}
        void enter() {}
        void leave() {}
    };
#endif

    Stack own_;
    Stack home_;
    Watched watched_;
};

/// What came before reported() is seen by whatever follows acquire().
class Order {
   public:
#if defined(PCCL_THREAD_SANITIZER)
    void reported() { __tsan_release(this); }
    void acquire() { __tsan_acquire(this); }
#else
    void reported() {}
    void acquire() {}
#endif
};

}  // namespace pccl::emulator
