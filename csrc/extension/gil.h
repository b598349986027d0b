// SPDX-License-Identifier: Apache-2.0

// Release and acquisition of the GIL that the end of the interpreter cannot turn into an abort.
//
// When the interpreter ends, a daemon thread that takes the GIL is ended by Python: it unwinds the
// thread's stack (pthread_exit), which aborts the process at the first destructor. These classes
// suspend the thread until the process ends, as Python 3.14 does itself.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

namespace pccl::extension {

/// Suspends this thread until the process ends.
[[noreturn]] inline void suspend_thread() {
    for (;;) ::pause();
}

/// Takes the GIL for the thread that released it with PyEval_SaveThread().
inline void restore_thread(PyThreadState* state) noexcept {
    try {
        PyEval_RestoreThread(state);
    } catch (...) {  // Python throws nothing: the thread is being ended
        suspend_thread();
    }
}

/// Releases the GIL until it is destroyed. Requires the GIL.
class ReleasedGil {
   public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;
    ~ReleasedGil() { restore_thread(state_); }

   private:
    PyThreadState* state_;
};

/// Holds the GIL until it is destroyed. The thread may hold it already.
class HeldGil {
   public:
    HeldGil() noexcept try {
    } catch (...) {
        suspend_thread();
    }
    HeldGil(const HeldGil&) = delete;
    HeldGil& operator=(const HeldGil&) = delete;
    ~HeldGil() = default;

   private:
    pybind11::gil_scoped_acquire gil_;
};

}  // namespace pccl::extension
