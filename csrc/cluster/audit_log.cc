// SPDX-License-Identifier: Apache-2.0
#include "csrc/cluster/audit_log.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "csrc/base/clock.h"
#include "csrc/base/scope_exit.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/private_file.h"

namespace pccl::cluster {

namespace {

/// Returns "2026-11-25T18:00:00.123Z".
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

std::string stamped(std::string_view event) {
    return concat("{\"time\":\"", now_in_words(), "\",\"user\":", ::geteuid(),
                  ",\"pid\":", ::getpid(), ",", event.substr(1));
}

/// Locks the file against other controllers, so that a truncation removes only this one's lines;
/// returns 0 or an errno. File systems without locks are accepted.
int lock_file(int fd) {
    constexpr Duration kBetweenTries = std::chrono::milliseconds(5);
    const Deadline deadline = Deadline::after(std::chrono::seconds(2));
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno != EWOULDBLOCK) return 0;
        if (deadline.passed()) return EWOULDBLOCK;
        system_clock().sleep_for(kBetweenTries);
    }
    return 0;
}

/// Returns whether the file ends in the middle of a line, as after a crash during a write.
bool ends_in_line(int fd, off_t size) {
    char last = '\n';
    return size > 0 && ::pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

/// Reserves space behind the end; returns 0 or an errno. File systems without support are accepted.
int reserve(int fd, off_t size, std::size_t bytes) {
    if (::fallocate(fd, FALLOC_FL_KEEP_SIZE, size, static_cast<off_t>(bytes)) == 0) return 0;
    return errno == ENOSPC || errno == EDQUOT ? errno : 0;
}

}  // namespace

Result<AuditLog> AuditLog::open(const std::string& path) {
    if (path.empty()) return AuditLog({}, path);
    // O_NONBLOCK: opening a pipe must not block; it is rejected below.
    const int flags = O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    UniqueFd file(::open(path.c_str(), flags, S_IRUSR | S_IWUSR));
    if (!file.is_open())
        return Status::from_errno(errno, concat("cannot append to the audit log ", path));
    PCCL_TRY(sys::check_private(file.get(), concat("the audit log ", path),
                                {.of_own = S_IWGRP | S_IWOTH, .of_root = S_IWGRP | S_IWOTH}));
    return AuditLog(std::move(file), path);
}

AuditLog::~AuditLog() { static_cast<void>(write_waiting()); }

Status AuditLog::add(std::string_view event, std::size_t room) {
    std::string line = stamped(event);
    PCCL_TRY(write_waiting());
    PCCL_TRY(write(line + '\n', room));
    keep(std::move(line));
    return Status::ok();
}

Status AuditLog::add_done(std::string_view event) {
    std::string line = stamped(event);
    if (file_.is_open()) waiting_ += line + '\n';
    keep(std::move(line));
    return write_waiting();
}

void AuditLog::keep(std::string line) {
    if (kept_.size() == kMostKept) kept_.pop_front();
    kept_.push_back(std::move(line));
}

Status AuditLog::write_waiting() {
    if (waiting_.empty()) return Status::ok();
    PCCL_TRY(write(waiting_, 0).with_context("the audit log lacks this change"));
    waiting_.clear();
    return Status::ok();
}

Status AuditLog::write(std::string_view lines, std::size_t room) {
    if (!file_.is_open()) return Status::ok();
    if (const int error = lock_file(file_.get()); error != 0) return fault(error);
    const ScopeExit unlock([this] { ::flock(file_.get(), LOCK_UN); });
    return append(std::string(lines), room);
}

/// Appends all or nothing, because a partial line would hide the next one.
Status AuditLog::append(std::string lines, std::size_t room) {
    struct stat file {};
    if (::fstat(file_.get(), &file) != 0) return fault(errno);
    if (ends_in_line(file_.get(), file.st_size)) lines.insert(lines.begin(), '\n');
    const auto take_back = [&] { return ::ftruncate(file_.get(), file.st_size) == 0; };
    if (const int error = reserve(file_.get(), file.st_size, lines.size() + room); error != 0) {
        static_cast<void>(take_back());  // part of it may have been reserved
        return fault(error);
    }
    const ssize_t written = ::write(file_.get(), lines.data(), lines.size());
    const bool is_whole = written == static_cast<ssize_t>(lines.size());
    if (is_whole && ::fdatasync(file_.get()) == 0) return Status::ok();
    const int error = written >= 0 && !is_whole ? ENOSPC : errno;
    if (written > 0) static_cast<void>(take_back());
    return fault(error);
}

Status AuditLog::fault(int error) const {
    if (error == EWOULDBLOCK)
        return Status::unavailable(
            concat("cannot write to the audit log ", path_, ": another process has it locked"));
    return Status::from_errno(error, concat("cannot write to the audit log ", path_));
}

namespace {

using OrderedJson = nlohmann::ordered_json;

double in_ms(Duration duration) {
    return std::chrono::duration<double, std::milli>(duration).count();
}

OrderedJson in_json(const Circuits& circuits) {
    OrderedJson list = OrderedJson::array();
    for (const Circuit& each : circuits) list.push_back({each.ingress, each.egress});
    return list;
}

OrderedJson in_json(const MemberReport& member) {
    OrderedJson requests = OrderedJson::array();
    for (const Exchange& each : member.exchanges)
        requests.push_back({{"operation", each.operation},
                            {"message_id", each.message_id},
                            {"ms", in_ms(each.took)},
                            {"outcome", each.outcome}});
    OrderedJson steps = OrderedJson::array();
    for (const StepTime& each : member.steps)
        steps.push_back({{"step", to_string(each.step)}, {"ms", in_ms(each.took)}});
    return {{"name", member.name},
            {"fault", member.status.message()},
            {"found", in_json(member.found)},
            {"discarded", member.discarded},
            {"startup", member.startup},
            {"steps", steps},
            {"requests", requests}};
}

template <typename T>
OrderedJson list_of(const std::vector<T>& values) {
    OrderedJson list = OrderedJson::array();
    for (const T& each : values) list.push_back(in_json(each));
    return list;
}

OrderedJson in_json(const Report& report) {
    return {{"outcome", to_string(report.ending)}, {"code", to_string(report.reason.code())},
            {"reason", report.reason.message()},   {"total_ms", in_ms(report.total)},
            {"dark_ms", in_ms(report.dark)},       {"unrecorded", report.unrecorded.message()},
            {"switches", list_of(report.members)}};
}

/// Returns one line of ASCII, because text from a device need not be UTF-8.
std::string dumped(const OrderedJson& json) {
    return json.dump(-1, ' ', true, OrderedJson::error_handler_t::replace);
}

}  // namespace

std::string beginning_json(const std::string& from, const std::string& to,
                           const std::vector<SwitchMember>& members) {
    OrderedJson switches = OrderedJson::array();
    for (const SwitchMember& each : members)
        switches.push_back(
            {{"name", each.name}, {"from", in_json(each.from)}, {"to", in_json(each.to)}});
    return dumped({{"event", "begin"},
                   {"from", from.empty() ? "unknown" : from},
                   {"to", to},
                   {"switches", switches}});
}

std::string ending_json(const std::string& to, const Report& report) {
    OrderedJson event = {{"event", "end"}, {"to", to}};
    event.update(in_json(report));
    return dumped(event);
}

std::string adoption_json(const std::string& phase) {
    return dumped({{"event", "adopt"}, {"phase", phase}});
}

}  // namespace pccl::cluster
