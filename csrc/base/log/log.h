// SPDX-License-Identifier: Apache-2.0

// Log lines on stderr: "[pccl 14:03:22.114 info rank 0] shm to rank 1: same host".
//
// The level comes from PCCL_LOG_LEVEL (trace, debug, info, warning, error, off; default warning).
// Logging is thread-safe, also in children of fork(), and no thread waits for the reader
// (line_writer.h). It is too slow for hot paths: callers on a path of microseconds must not log.
#pragma once

#include <string_view>

#include <pccl/export.h>
#include "csrc/base/log_level.h"
#include "csrc/base/text/text.h"

namespace pccl {

PCCL_API void set_log_level(LogLevel level);
[[nodiscard]] PCCL_API bool log_enabled(LogLevel level);
PCCL_API void log_line(LogLevel level, std::string_view text);

template <typename... Parts>
void log(LogLevel level, const Parts&... parts) {
    if (log_enabled(level)) log_line(level, concat(parts...));
}

}  // namespace pccl
