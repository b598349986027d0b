#include "csrc/base/log.h"

#include <pthread.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <mutex>

#include "csrc/base/config.h"
#include "csrc/base/line_writer.h"

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

constexpr const char* kName = "pccl";
constexpr Duration kFarewell = std::chrono::seconds(1);  // to what is not written when all ends

/// stderr, whose reader no thread of the library may wait for.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    StderrSink() { set_pattern("[%n %H:%M:%S.%e %l %P] %v"); }

    void say_farewell() {
        const std::lock_guard lock(mutex_);
        lines_.flush(kFarewell);
    }

    // A child of fork() has the lock as it was then, and lines that its parent will write.
    void before_fork() { mutex_.lock(); }
    void after_fork() { mutex_.unlock(); }
    void begin_as_child() {
        lines_.forget();
        mutex_.unlock();
    }

   private:
    void sink_it_(const spdlog::details::log_msg& message) override {
        spdlog::memory_buf_t line;
        formatter_->format(message, line);
        lines_.write({line.data(), line.size()});
    }
    void flush_() override {}  // what could be written is

    LineWriter lines_{STDERR_FILENO};
};

/// Leaked on purpose, as the logger is: threads may log while static objects are being destroyed.
const std::shared_ptr<StderrSink>& sink() {
    static const auto* const instance = [] {
        const auto* const made = new std::shared_ptr<StderrSink>(std::make_shared<StderrSink>());
        ::pthread_atfork([] { sink()->before_fork(); }, [] { sink()->after_fork(); },
                         [] { sink()->begin_as_child(); });
        std::atexit([] { sink()->say_farewell(); });
        return made;
    }();
    return *instance;
}

spdlog::logger& logger() {
    static spdlog::logger* const instance = [] {
        auto* created = new spdlog::logger(kName, sink());
        created->set_level(to_spdlog(process_config().log_level));
        return created;
    }();
    return *instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }

bool log_enabled(LogLevel level) { return logger().should_log(to_spdlog(level)); }

void log_about_settings(std::string_view text) {
    sink()->log({kName, spdlog::level::warn, {text.data(), text.size()}});
}

void log_line(LogLevel level, std::string_view text) {
    logger().log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
}

}  // namespace pccl
