// Waiting for threads that may want the GIL.
#pragma once

#include <Python.h>

#include "csrc/base/scope_exit.h"

namespace pccl::backend {

/// Where this thread holds the GIL, others may have it until the result goes. Who waits for a
/// thread that wants it would wait for ever.
inline auto without_gil() {
    PyThreadState* state =
        Py_IsInitialized() != 0 && PyGILState_Check() != 0 ? PyEval_SaveThread() : nullptr;
    return ScopeExit([state] {
        if (state != nullptr) PyEval_RestoreThread(state);
    });
}

}  // namespace pccl::backend
