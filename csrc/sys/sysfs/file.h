// SPDX-License-Identifier: Apache-2.0

// Files by name: the only functions that open, read and replace them. They do not block on special
// files: a pipe or a device is not read; it is written to but never replaced.
#pragma once

#include <string>
#include <vector>

#include <pccl/status.h>
#include "csrc/base/unique_fd.h"

namespace pccl::sys {

/// Returns ok for a regular file, those of sysfs and procfs included; otherwise kUnavailable,
/// beginning with `what`.
[[nodiscard]] PCCL_API Status check_regular(int fd, std::string_view what);

/// Returns the content of a regular file, also of sysfs and procfs. kUnavailable when it cannot be
/// read; kResourceExhausted when it is longer than `limit` or this process may open no more.
[[nodiscard]] PCCL_API Result<std::string> read_file(const std::string& path, std::size_t limit);
/// Returns the first `limit` bytes; other errors as above.
[[nodiscard]] PCCL_API Result<std::string> read_start(const std::string& path, std::size_t limit);
/// Returns the first `limit` bytes of an open file.
[[nodiscard]] PCCL_API Result<std::string> read_open(int fd, std::size_t limit);

/// Replaces the file as a whole (also a link at `path`), or leaves it unchanged and returns the
/// reason. Pipes, character devices (/dev/null, terminals) and this process's descriptors
/// (/dev/stdout) are written to; those that accept nothing for some seconds fail. Sockets and block
/// devices are refused.
[[nodiscard]] PCCL_API Status write_file(const std::string& path, std::string_view text);
/// Returns ok where write_file() would succeed now, for a later write. Leaves nothing behind.
[[nodiscard]] PCCL_API Status check_writable(const std::string& path);

}  // namespace pccl::sys
