// SPDX-License-Identifier: Apache-2.0

// Check whether memory of this process is writable, before a write can fail.
#pragma once

#include <cstddef>
#include <span>

#include <pccl/export.h>

namespace pccl {

/// Returns whether the first and the last page of `memory` are writable: a file that is mapped
/// read-only is not. Makes a system call for each page; changes nothing, and may run beside others
/// that write there. Returns true for no bytes.
[[nodiscard]] PCCL_API bool is_writable(std::span<const std::byte> memory);

}  // namespace pccl
