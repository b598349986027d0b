// Status -> the exceptions that torch's users expect, which are also those of pccl.errors.
//
//   kInvalidArgument -> ValueError, kUnsupported -> NotImplementedError (a RuntimeError),
//   everything else  -> torch.distributed.DistBackendError (a RuntimeError);
//
// each of a class in pccl.torch_errors that is that and, for example, pccl.PeerLostError. All texts
// open with the operation, "pccl:all_reduce", and the name of the code.
#pragma once

#include <torch/csrc/utils/pybind.h>

#include <exception>
#include <string_view>

#include "csrc/base/status.h"

namespace pccl::backend {

/// `operation` as in profiles: "pccl:all_reduce". Where a signal handler of Python has raised on
/// this thread, throws what it raised.
[[noreturn]] void throw_status(std::string_view operation, const Status& status);

/// Null when ok.
[[nodiscard]] std::exception_ptr to_exception(std::string_view operation, const Status& status);

inline void throw_unless_ok(std::string_view operation, const Status& status) {
    if (!status.is_ok()) throw_status(operation, status);
}

/// For asynchronous operations: throws what is wrong with the call itself, which nothing was sent
/// for. Other failures are for those who wait.
inline void throw_if_refused(std::string_view operation, const Status& status) {
    const bool is_refused =
        status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kUnsupported;
    if (is_refused) throw_status(operation, status);
}

/// Lets Python see the classes of pccl.torch_errors, wherever torch throws what this made.
void register_exception_translator();

}  // namespace pccl::backend
