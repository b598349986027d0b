// The one way to open a file that is to be read.
#pragma once

#include <fcntl.h>

#include <string>

#include "csrc/base/unique_fd.h"

namespace pccl {

/// Opened to be read, with open(2)'s `flags` besides; not open, with errno, where that fails.
/// Nobody is waited for: a pipe is opened, too, and whoever reads looks at what it has.
[[nodiscard]] inline UniqueFd open_to_read(const std::string& path, int flags = 0) {
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
}

}  // namespace pccl
