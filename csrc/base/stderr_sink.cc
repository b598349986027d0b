// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/stderr_sink.h"

#include <pthread.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <cstdlib>
#include <mutex>

#include <pccl/deadline.h>
#include "csrc/base/line_writer.h"

namespace pccl {
namespace {

constexpr Duration kLastNote = std::chrono::seconds(1);  // limit for unwritten lines at the end of
                                                         // the process

/// Sink to stderr, on whose reader no thread of the library may wait.
class StderrSink final : public spdlog::sinks::base_sink<std::mutex> {
   public:
    StderrSink() { set_pattern("[%n %H:%M:%S.%e %l %P] %v"); }

    void write_last_note() {
        const std::lock_guard lock(mutex_);
        lines_.flush(kLastNote);
    }

    // A child of fork() has the lock in its state at that time, and lines that its parent will
    // write.
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
    void flush_() override {}  // all writable lines are written already

    LineWriter lines_{STDERR_FILENO};
};

const std::shared_ptr<StderrSink>& sink() {
    static const auto* const instance = [] {
        const auto* const made = new std::shared_ptr<StderrSink>(std::make_shared<StderrSink>());
        ::pthread_atfork([] { sink()->before_fork(); }, [] { sink()->after_fork(); },
                         [] { sink()->begin_as_child(); });
        std::atexit([] { sink()->write_last_note(); });
        return made;
    }();
    return *instance;
}

}  // namespace

std::shared_ptr<spdlog::sinks::sink> stderr_sink() { return sink(); }

void log_about_settings(std::string_view text) {
    sink()->log({kLogName, spdlog::level::warn, {text.data(), text.size()}});
}

}  // namespace pccl
