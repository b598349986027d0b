// SPDX-License-Identifier: Apache-2.0

// What NIXL's tests need of abseil's log: a sink that gets its entries.
#pragma once

#include <string>
#include <string_view>

namespace absl {

enum class LogSeverity { kInfo, kWarning, kError, kFatal };

/// One message.
class LogEntry {
   public:
    LogEntry(LogSeverity severity, std::string_view text) : severity_(severity), text_(text) {}
    [[nodiscard]] LogSeverity log_severity() const { return severity_; }
    [[nodiscard]] std::string_view text_message() const { return text_; }

   private:
    LogSeverity severity_;
    std::string text_;
};

class LogSink {
   public:
    virtual ~LogSink() = default;
    virtual void Send(const LogEntry& entry) = 0;
};

}  // namespace absl
