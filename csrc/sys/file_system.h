// SPDX-License-Identifier: Apache-2.0

// Kind of the file system of an open file.
#pragma once

#include <pccl/export.h>

namespace pccl::sys {

/// Returns whether the file is on a file system of this host alone, where changes of one process
/// are visible to all at once. False for network file systems, and for unknown ones.
[[nodiscard]] PCCL_API bool is_on_local_file_system(int fd);

}  // namespace pccl::sys
