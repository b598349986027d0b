// SPDX-License-Identifier: Apache-2.0

// Special files at a path, which are written to in place.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

/// Returns "a folder", "a pipe", ...
[[nodiscard]] std::string_view kind_of(mode_t mode);

/// Opens a special file to be written to: a pipe, a character device, or one of this process's
/// descriptors (/dev/stdout, /dev/fd/3). Returns no descriptor for a regular file, a folder, or a
/// missing path. kUnavailable for sockets, block devices, and pipes that no process opens to read
/// within a second.
[[nodiscard]] Result<UniqueFd> open_special(const std::string& path);

/// Writes all of `text`. kTimeout when nothing is accepted for some seconds.
[[nodiscard]] Status write_special(int fd, const std::string& path, std::string_view text);

}  // namespace pccl::sys
