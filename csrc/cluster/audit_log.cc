#include "csrc/cluster/audit_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/text.h"
#include "csrc/sys/private_file.h"

namespace pccl::cluster {
namespace {

/// "2026-11-25T18:00:00.123Z"
std::string now_in_words() {
    const long long ms = wall_clock_ms();
    const std::time_t seconds = ms / 1000;
    std::tm parts{};
    ::gmtime_r(&seconds, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
    const std::string fraction = concat(1000 + ms % 1000);
    return concat(text.data(), ".", fraction.substr(1), "Z");
}

}  // namespace

Result<AuditLog> AuditLog::open(const std::string& path) {
    if (path.empty()) return AuditLog({}, path);
    // A pipe must not be waited for: one that nobody reads is no such device.
    const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    UniqueFd file(::open(path.c_str(), flags, S_IRUSR | S_IWUSR));
    if (!file.is_open())
        return Status::from_errno(errno, concat("cannot append to the audit log ", path));
    PCCL_TRY(sys::check_private(file.get(), concat("the audit log ", path),
                                {.of_own = S_IWGRP | S_IWOTH, .of_root = S_IWGRP | S_IWOTH}));
    return AuditLog(std::move(file), path);
}

Status AuditLog::add(std::string_view event) {
    std::string text = concat("{\"time\":\"", now_in_words(), "\",\"user\":", ::geteuid(),
                              ",\"pid\":", ::getpid(), ",", event.substr(1));
    if (kept_.size() == kMostKept) kept_.pop_front();
    kept_.push_back(text);
    if (!file_.is_open()) return Status::ok();
    text += '\n';
    // In one call, so that lines of several processes do not mix.
    const ssize_t written = ::write(file_.get(), text.data(), text.size());
    if (written != static_cast<ssize_t>(text.size()) || ::fdatasync(file_.get()) != 0)
        return Status::from_errno(written < 0 ? errno : ENOSPC,
                                  concat("cannot write to the audit log ", path_));
    return Status::ok();
}

}  // namespace pccl::cluster
