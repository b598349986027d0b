// SPDX-License-Identifier: Apache-2.0

// Release of the GIL while waiting for threads that may require it.
#pragma once

#include <Python.h>

#include "csrc/base/scope_exit.h"
#include "csrc/extension/gil.h"

namespace pccl::backend {

/// Releases the GIL, if this thread holds it, until the result is destroyed. Without that, waiting
/// for a thread that requires the GIL deadlocks.
inline auto without_gil() {
    PyThreadState* state =
        Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr;
    return ScopeExit([state] {
        if (state != nullptr) extension::restore_thread(state);
    });
}

}  // namespace pccl::backend
