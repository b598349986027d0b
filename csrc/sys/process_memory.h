// Another process's memory, read in one copy by the kernel.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "csrc/base/status.h"

namespace pccl::sys {

/// What a process keeps at an address, and nobody else knows: numbers of processes are given out
/// again, and exec(2) puts another program's memory in the place of one's own.
struct ProcessMark {
    std::uint64_t address = 0;
    std::uint64_t value = 0;
};

/// Fills `into` with what lies at `address` of the process with this mark, which is `pid` as this
/// one numbers it: process_vm_readv(2), which needs the right to trace that process. kUnavailable
/// where that is refused, the process or the memory is gone, or another process has its place;
/// then part may have been copied.
[[nodiscard]] PCCL_API Status read_process_memory(pid_t pid, const ProcessMark& mark,
                                                  std::uint64_t address, std::span<std::byte> into);

}  // namespace pccl::sys
