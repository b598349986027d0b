// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace pccl::arithmetic {

/// Kernel for dst[i] = a[i] (op) b[i]; dst may be a or b, but must not overlap them otherwise.
using Combine = void (*)(std::byte* dst, const std::byte* a, const std::byte* b, std::size_t count);

}  // namespace pccl::arithmetic
