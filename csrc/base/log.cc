#include "csrc/base/log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <iostream>
#include <memory>

#include "csrc/base/config.h"
#include "csrc/base/fork.h"

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

/// A logger with a lock of its own, and the process that it serves.
struct ProcessLogger {
    explicit ProcessLogger(spdlog::level::level_enum level) {
        logger.set_pattern("[%n %H:%M:%S.%e %l %P] %v");
        logger.set_level(level);
        logger.flush_on(spdlog::level::warn);
    }

    ForkMark made_in;
    spdlog::logger logger{"pccl", std::make_shared<spdlog::sinks::ostream_sink_mt>(std::cerr)};
};

/// A child of fork() makes another: a thread that it lacks may have been logging. Leaked on
/// purpose: threads may log while static objects are being destroyed.
spdlog::logger& logger() {
    static std::atomic<ProcessLogger*> current{nullptr};
    ProcessLogger* known = current.load();
    if (known != nullptr && !known->made_in.is_child()) return known->logger;
    auto made = std::make_unique<ProcessLogger>(
        known == nullptr ? to_spdlog(process_config().log_level) : known->logger.level());
    if (current.compare_exchange_strong(known, made.get())) known = made.release();
    return known->logger;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

void log_line(LogLevel level, std::string_view text) {
    logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace pccl
