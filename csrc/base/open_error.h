// SPDX-License-Identifier: Apache-2.0

// Errors of opening a file that a user has named.
#pragma once

#include <string_view>

#include <pccl/status.h>

namespace pccl {

/// Returns the error of a file that cannot be opened, from errno: kInvalidArgument, because the
/// name is wrong, or kResourceExhausted if this process lacks descriptors or memory.
[[nodiscard]] inline Status open_error(int error, std::string_view what) {
    Status status = Status::from_errno(error, what);
    if (status.code() == StatusCode::kResourceExhausted) return status;
    return Status::invalid_argument(status.message());
}

}  // namespace pccl
