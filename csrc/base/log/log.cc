// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/log/log.h"

#include <spdlog/spdlog.h>

#include "csrc/base/config.h"
#include "csrc/base/stderr_sink.h"

namespace pccl {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
    switch (level) {
        case LogLevel::kTrace:
            return spdlog::level::trace;
        case LogLevel::kDebug:
            return spdlog::level::debug;
        case LogLevel::kInfo:
            return spdlog::level::info;
        case LogLevel::kWarning:
            return spdlog::level::warn;
        case LogLevel::kError:
            return spdlog::level::err;
        case LogLevel::kOff:
            return spdlog::level::off;
    }
    return spdlog::level::warn;
}

spdlog::logger& logger() {
    static spdlog::logger* const instance = [] {
        auto* created = new spdlog::logger(kLogName, stderr_sink());
        created->set_level(to_spdlog(process_config().log_level));
        return created;
    }();
    return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

void log_line(LogLevel level, std::string_view text) {
    logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace pccl
