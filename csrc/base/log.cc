#include "csrc/base/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <memory>

#include "csrc/base/config.h"

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
    // Leaked on purpose: threads may log while static objects are being destroyed.
    static spdlog::logger* const instance = [] {
        auto* created =
            new spdlog::logger("pccl", std::make_shared<spdlog::sinks::stderr_sink_mt>());
        created->set_pattern("[%n %H:%M:%S.%e %l %P] %v");
        created->set_level(to_spdlog(process_config().log_level));
        created->flush_on(spdlog::level::warn);
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
