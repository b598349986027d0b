// Files read whole, of a bounded size; sysfs and procfs entries among them.
#pragma once

#include <string>
#include <vector>

#include "csrc/base/status.h"

namespace pccl::sys {

/// kUnavailable when it cannot be read; kResourceExhausted when it is longer than `limit`, or this
/// process may open no more.
[[nodiscard]] PCCL_API Result<std::string> read_file(const std::string& path, std::size_t limit);
/// The first `limit` bytes of it; errors else as above.
[[nodiscard]] PCCL_API Result<std::string> read_start(const std::string& path, std::size_t limit);
/// The first `limit` bytes of an open file, or pipe.
[[nodiscard]] PCCL_API Result<std::string> read_open(int fd, std::size_t limit);
/// Replaces the file as a whole (a link at `path`, too), or leaves it as it was and says why.
[[nodiscard]] PCCL_API Status write_file(const std::string& path, const std::string& text);

}  // namespace pccl::sys
