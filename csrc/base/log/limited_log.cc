// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/log/limited_log.h"

#include <utility>

namespace pccl {
namespace {

constexpr auto kSeconds = std::chrono::duration_cast<std::chrono::seconds>(LimitedLog::kPeriod);

}  // namespace

LimitedLog::LimitedLog(std::string what, const Clock& clock)
    : what_(std::move(what)), clock_(clock), period_(Deadline::after(kPeriod, clock)) {}

LimitedLog::~LimitedLog() {
    if (!made_in_.is_child()) log_count();
}

bool LimitedLog::admits(const std::string& source) {
    const std::lock_guard lock(mutex_);
    if (period_.passed(clock_)) begin_period();
    if (lines_ < kLines && ++lines_of_[source] <= kLinesOfOneSource) {
        ++lines_;
        return true;
    }
    if (counted_++ == 0)
        log(LogLevel::kWarning, "more ", what_, ": for ", kSeconds.count(), " s they are counted");
    return false;
}

void LimitedLog::begin_period() {
    log_count();
    period_ = Deadline::after(kPeriod, clock_);
    lines_ = 0;
    lines_of_.clear();
}

void LimitedLog::log_count() {
    if (counted_ == 0) return;
    log(LogLevel::kWarning, std::exchange(counted_, 0), " more ", what_);
}

}  // namespace pccl
