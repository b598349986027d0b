// Where log lines go, before and after it is known which of them are wanted.
#pragma once

#include <memory>
#include <string_view>

namespace spdlog::sinks {
class sink;
}

namespace pccl {

inline constexpr const char* kLogName = "pccl";

/// Never destroyed, as the logger is not: threads may log while static objects are being destroyed.
std::shared_ptr<spdlog::sinks::sink> stderr_sink();

/// A warning at any level, and before the level is known.
void log_about_settings(std::string_view text);

}  // namespace pccl
