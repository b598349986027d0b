// Files by name: the one way to open, read and replace them. Nobody is waited for: what is no
// regular file (a pipe, a device) is not read, and is written to but never replaced.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/open_file.h"
#include "csrc/base/status.h"

namespace pccl::sys {

/// kUnavailable, beginning with `what`, for what is no regular file; those of sysfs and procfs are.
[[nodiscard]] PCCL_API Status check_regular(int fd, std::string_view what);

/// What is in a regular file, sysfs and procfs entries among them. kUnavailable when it cannot be
/// read; kResourceExhausted when it is longer than `limit`, or this process may open no more.
[[nodiscard]] PCCL_API Result<std::string> read_file(const std::string& path, std::size_t limit);
/// The first `limit` bytes of it; errors else as above.
[[nodiscard]] PCCL_API Result<std::string> read_start(const std::string& path, std::size_t limit);
/// The first `limit` bytes of an open file.
[[nodiscard]] PCCL_API Result<std::string> read_open(int fd, std::size_t limit);

/// Replaces the file as a whole (a link at `path`, too), or leaves it as it was and says why. Pipes
/// and character devices, as /dev/null and terminals, are written to, and so are this process's
/// descriptors, as /dev/stdout; those that take nothing for some seconds are given up. Sockets and
/// block devices are refused.
[[nodiscard]] PCCL_API Status write_file(const std::string& path, std::string_view text);
/// Whether write_file() could, now: for what is written later. Leaves nothing.
[[nodiscard]] PCCL_API Status check_writable(const std::string& path);

}  // namespace pccl::sys
