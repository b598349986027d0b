// SPDX-License-Identifier: Apache-2.0

// Conversion of Status to the exceptions that torch's users expect, which are also those of
// pccl.errors.
//
//   kInvalidArgument -> ValueError, kUnsupported -> NotImplementedError (a RuntimeError),
//   everything else  -> torch.distributed.DistBackendError (a RuntimeError);
//
// Each has a class in pccl.torch.errors that derives from that exception and, for example, from
// pccl.PeerLostError. All texts begin with the operation, "pccl:all_reduce", and the name of the
// code.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <string_view>

#include "csrc/base/status.h"

namespace pccl::backend {

/// Throws `status`. `operation` is the title as in profiles: "pccl:all_reduce". If a Python signal
/// handler has raised an exception on this thread, throws that one instead.
[[noreturn]] void throw_status(std::string_view operation, const Status& status);

/// Returns null when ok.
[[nodiscard]] std::exception_ptr to_exception(std::string_view operation, const Status& status);

inline void throw_unless_ok(std::string_view operation, const Status& status) {
    if (!status.is_ok()) throw_status(operation, status);
}

/// Throws for an asynchronous operation with an invalid call, of which nothing was sent. Its work
/// reports other failures.
inline void throw_if_refused(std::string_view operation, const Status& status) {
    const bool is_refused =
        status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kUnsupported;
    if (is_refused) throw_status(operation, status);
}

/// Registers the classes of pccl.torch.errors with pybind11, for exceptions that torch rethrows.
void register_exception_translator();

}  // namespace pccl::backend
