// Another process's memory, read in one copy by the kernel.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "csrc/base/status.h"

namespace pccl::sys {

/// Copies `bytes` at `address` of process `pid` (as this one numbers it) to `into`:
/// process_vm_readv(2), which needs the right to trace that process. kUnavailable where that is
/// refused, the process is gone, or the memory is not there; then part may have been copied.
[[nodiscard]] PCCL_API Status read_process_memory(pid_t pid, std::uint64_t address, std::byte* into,
                                                  std::size_t bytes);

}  // namespace pccl::sys
