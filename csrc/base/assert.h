// SPDX-License-Identifier: Apache-2.0

// Assertions of the library's own invariants.
#pragma once

#include <pccl/export.h>

namespace pccl {

/// Prints the message with its origin and aborts: only for broken invariants of the library.
[[noreturn]] PCCL_API void assertion_failed(const char* what, const char* file, int line);

}  // namespace pccl

/// Aborts unless the condition holds, in every build.
#define PCCL_ASSERT(condition) \
    ((condition) ? (void)0 : ::pccl::assertion_failed(#condition, __FILE__, __LINE__))
