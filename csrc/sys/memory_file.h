// Files without a name that live in memory, for processes to share.
#pragma once

#include <cstddef>
#include <string>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

/// Makes a file of `bytes` zeroes whose size is sealed, so that no access to a mapping of it can
/// fault; `name` shows in /proc/<pid>/maps. Pages are allocated when they are first used.
/// kUnavailable names the limit where this process may not write files of that size (ulimit -f),
/// kUnsupported means that the kernel or a filter of system calls refuses, kResourceExhausted that
/// there is no descriptor or no memory left.
[[nodiscard]] PCCL_API Result<UniqueFd> make_memory_file(const std::string& name,
                                                         std::size_t bytes);

}  // namespace pccl::sys
