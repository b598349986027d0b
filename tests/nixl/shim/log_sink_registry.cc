// SPDX-License-Identifier: Apache-2.0
#include "absl/log/log_sink_registry.h"

#include <unistd.h>

#include <cstdio>
#include <mutex>
#include <optional>

namespace {

std::mutex lock;
absl::LogSink* receiver = nullptr;
std::FILE* written = nullptr;  // where standard error goes
int before = -1;               // where it went
long seen = 0;                 // bytes of the file
std::string line;              // of which the end has not come

/// Messages begin with their severity and the date: "W1126 05:04:01.000001 1234 file.cpp:7] text".
std::optional<absl::LogSeverity> severity_of(std::string_view text) {
    const auto letter = std::string_view("IWEF").find(text.front());
    if (letter == std::string_view::npos || text.size() < 5) return std::nullopt;
    if (text.substr(1, 4).find_first_not_of("0123456789") != std::string_view::npos)
        return std::nullopt;
    return static_cast<absl::LogSeverity>(letter);
}

void send_line() {
    const auto text = line.find("] ");
    if (!line.empty() && text != std::string::npos)
        if (const auto severity = severity_of(line))
            receiver->Send({*severity, std::string_view(line).substr(text + 2)});
    line.clear();
}

}  // namespace

namespace absl {

void AddLogSink(LogSink* sink) {
    const std::lock_guard locked(lock);
    receiver = sink;
    written = std::tmpfile();
    before = ::dup(STDERR_FILENO);
    ::dup2(::fileno(written), STDERR_FILENO);
}

void RemoveLogSink(LogSink* /*sink*/) {
    pccl_shim::drain_log();
    const std::lock_guard locked(lock);
    ::dup2(before, STDERR_FILENO);
    ::close(before);
    std::fclose(written);
    written = nullptr;
    receiver = nullptr;
}

}  // namespace absl

namespace pccl_shim {

void drain_log() {
    const std::lock_guard locked(lock);
    if (receiver == nullptr) return;
    char letter = 0;
    while (::pread(::fileno(written), &letter, 1, seen) == 1) {
        ++seen;
        if (::write(before, &letter, 1) < 0) return;
        if (letter == '\n')
            send_line();
        else
            line += letter;
    }
}

}  // namespace pccl_shim
