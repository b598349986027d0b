// SPDX-License-Identifier: Apache-2.0

// Log of lines that outsiders can cause in any number. It writes the first few of each source and
// counts the rest of a period, so that a flood neither fills a disk nor hides other lines.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <pccl/deadline.h>
#include <pccl/export.h>
#include "csrc/base/fork.h"
#include "csrc/base/log/log.h"

namespace pccl {

/// Log with limits. Thread-safe.
class PCCL_API LimitedLog {
   public:
    static constexpr Duration kPeriod = std::chrono::seconds(10);
    static constexpr int kLinesOfOneSource = 8;  // in a period
    static constexpr int kLines = 32;            // of all sources, in a period

    /// Makes a log; `what` names the counted events: "connections refused".
    explicit LimitedLog(std::string what, const Clock& clock = system_clock());
    /// Logs the present count.
    ~LimitedLog();
    LimitedLog(const LimitedLog&) = delete;
    LimitedLog& operator=(const LimitedLog&) = delete;

    /// Logs a line; `source` is its cause: an address, a user.
    template <typename... Parts>
    void line(LogLevel level, const std::string& source, const Parts&... parts) {
        if (log_enabled(level) && admits(source)) log_line(level, concat(parts...));
    }

   private:
    bool admits(const std::string& source);
    void begin_period();
    void log_count();

    const std::string what_;
    const Clock& clock_;
    const ForkMark made_in_;
    std::mutex mutex_;
    Deadline period_;
    int lines_ = 0;                        // in this period
    std::map<std::string, int> lines_of_;  // by source; at most kLines entries
    std::uint64_t counted_ = 0;
};

}  // namespace pccl
