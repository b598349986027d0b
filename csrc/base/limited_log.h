// Lines that outsiders can cause as often as they like. The first few of each source are written,
// the rest of a period are counted, so that a flood fills no disk and hides nobody else's lines.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "csrc/base/clock.h"
#include "csrc/base/export.h"
#include "csrc/base/fork.h"
#include "csrc/base/log.h"

namespace pccl {

/// Safe from every thread.
class PCCL_API LimitedLog {
   public:
    static constexpr Duration kPeriod = std::chrono::seconds(10);
    static constexpr int kLinesOfOneSource = 8;  // in a period
    static constexpr int kLines = 32;            // of all

    /// `what` is counted: "connections refused".
    explicit LimitedLog(std::string what, const Clock& clock = system_clock());
    /// Says what was counted since.
    ~LimitedLog();
    LimitedLog(const LimitedLog&) = delete;
    LimitedLog& operator=(const LimitedLog&) = delete;

    /// `source` is whoever caused it: an address, a user.
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
    std::map<std::string, int> lines_of_;  // by source; at most kLines of them
    std::uint64_t counted_ = 0;
};

}  // namespace pccl
