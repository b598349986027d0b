// Whether memory of this process can be written, asked before it is too late.
#pragma once

#include <cstddef>
#include <span>

#include "csrc/base/export.h"

namespace pccl {

/// Whether the first and the last page of `memory` can be written: a file that is mapped read-only
/// cannot. Takes a system call for each; changes nothing, and may run beside others that write
/// there. True for no bytes.
[[nodiscard]] PCCL_API bool is_writable(std::span<const std::byte> memory);

}  // namespace pccl
