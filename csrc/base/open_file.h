// SPDX-License-Identifier: Apache-2.0

// The one way to open a file for reading.
#pragma once

#include <fcntl.h>

#include <string>

#include "csrc/base/unique_fd.h"

namespace pccl {

/// Opens a file for reading, with open(2)'s `flags` besides; the result is not open, and errno is
/// set, on failure. Does not block: it opens a pipe, too, and the reader checks for data.
[[nodiscard]] inline UniqueFd open_to_read(const std::string& path, int flags = 0) {
    return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flags));
}

}  // namespace pccl
