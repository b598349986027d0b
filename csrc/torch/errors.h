// Status -> the exceptions that torch's users expect.
//
//   kInvalidArgument -> ValueError, kUnsupported -> NotImplementedError (a RuntimeError),
//   everything else  -> torch.distributed.DistBackendError (a RuntimeError).
//
// All texts open with the operation, "pccl:all_reduce", and the name of the code.
#pragma once

#include <exception>
#include <string_view>

#include "csrc/base/status.h"

namespace pccl::backend {

/// `operation` as in profiles: "pccl:all_reduce".
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

}  // namespace pccl::backend
