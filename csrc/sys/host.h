// Which host this is, as far as sockets and memory are concerned.
#pragma once

#include <string>

#include "csrc/base/status.h"

namespace pccl::sys {

/// The same in all processes that one kernel runs in one network namespace, and nowhere else: the
/// boot id and the namespace's inode, "<uuid>.<number>".
[[nodiscard]] PCCL_API Result<std::string> host_identity();

/// Cores that this process may run on, at least 1.
[[nodiscard]] PCCL_API int usable_cores();

}  // namespace pccl::sys
