// SPDX-License-Identifier: Apache-2.0

// Handling of Python's signals while the main thread waits in C++.
#pragma once

#include <pybind11/pybind11.h>

#include <pccl/status.h>
#include "csrc/base/threads/background_thread.h"
#include "csrc/extension/gil.h"

namespace pccl::extension {

/// Runs Python's signal handlers, on the main thread only. Returns kAborted where one has raised an
/// exception. The caller may or may not hold the GIL.
[[nodiscard]] inline Status check_signals() {
    if (!is_main_thread() || Py_IsInitialized() == 0) return Status::ok();
    const HeldGil gil;
    if (PyErr_CheckSignals() == 0) return Status::ok();
    return Status::aborted("a signal interrupted this rank (Ctrl-C?)");
}

}  // namespace pccl::extension
