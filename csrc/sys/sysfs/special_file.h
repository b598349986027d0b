// What a path may name besides regular files, and how that is written to: in place.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

#include "csrc/base/status.h"
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

/// "a folder", "a pipe", ...
[[nodiscard]] std::string_view kind_of(mode_t mode);

/// Opened to be written to: a pipe, a character device, or one of this process's descriptors
/// (/dev/stdout, /dev/fd/3). Not open: what is there is a file to be replaced, or nothing is.
/// kUnavailable for sockets, block devices, and pipes that nobody opens to read within a second.
[[nodiscard]] Result<UniqueFd> open_special(const std::string& path);

/// Writes all of it. Gives up, with kTimeout, on what takes nothing for some seconds.
[[nodiscard]] Status write_special(int fd, const std::string& path, std::string_view text);

}  // namespace pccl::sys
