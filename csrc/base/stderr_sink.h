// SPDX-License-Identifier: Apache-2.0

// Destination of log lines, before and after the log level is set.
#pragma once

#include <memory>
#include <string_view>

namespace spdlog::sinks {
class sink;
}

namespace pccl {

inline constexpr const char* kLogName = "pccl";

/// Returns the sink. It is never destroyed, like the logger: threads may log while static objects
/// are being destroyed.
std::shared_ptr<spdlog::sinks::sink> stderr_sink();

/// Logs a warning at any level, and before the level is set.
void log_about_settings(std::string_view text);

}  // namespace pccl
