// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/sysfs/special_file.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>

#include <pccl/deadline.h>
#include "csrc/base/text/text.h"
#include "csrc/base/text/words.h"

namespace pccl::sys {
namespace {

constexpr Duration kForReader = std::chrono::seconds(1);
constexpr std::chrono::milliseconds kWriteTimeout = std::chrono::seconds(5);

Status cannot_write_to(const std::string& path) {
    return Status::from_errno(errno, concat("cannot write to ", path));
}

/// Returns the descriptor of a path such as /dev/stdout or /dev/fd/3, which leads, link by link, to
/// a folder of descriptors. The path must not be reopened: that would overwrite a file from its
/// start.
std::optional<int> own_descriptor(std::filesystem::path path) {
    constexpr int kMostLinks = 8;
    std::error_code error;
    const std::filesystem::path folder = std::filesystem::canonical("/proc/self/fd", error);
    for (int i = 0; !error && i < kMostLinks; ++i) {
        const std::filesystem::path parent =
            std::filesystem::canonical(std::filesystem::absolute(path).parent_path(), error);
        if (!error && parent == folder)
            return number_in(path.filename().string(), 0, std::numeric_limits<int>::max());
        const std::filesystem::path target = std::filesystem::read_symlink(path, error);
        path = target.is_absolute() ? target : parent / target;
    }
    return std::nullopt;
}

/// Opens a pipe. ENXIO means that it has no reader yet; one that has just been started may still
/// come.
UniqueFd open_for_reader(const std::string& path) {
    const Deadline deadline = Deadline::after(kForReader);
    for (;;) {
        UniqueFd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
        if (file.is_open() || errno != ENXIO || deadline.passed()) return file;
        system_clock().sleep_for(std::chrono::milliseconds(5));
    }
}

}  // namespace

std::string_view kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISBLK(mode)) return "a block device";
    return S_ISCHR(mode) ? "a device" : "a file";
}

Result<UniqueFd> open_special(const std::string& path) {
    struct stat facts {};
    if (const auto own = own_descriptor(path)) {
        UniqueFd copy(::fcntl(*own, F_DUPFD_CLOEXEC, 0));
        if (!copy.is_open()) return cannot_write_to(path);
        return copy;
    }
    if (::stat(path.c_str(), &facts) != 0 || S_ISREG(facts.st_mode) || S_ISDIR(facts.st_mode))
        return UniqueFd();
    if (!S_ISCHR(facts.st_mode) && !S_ISFIFO(facts.st_mode))
        return Status::unavailable(concat("cannot write to ", path, ": it is ",
                                          kind_of(facts.st_mode),
                                          "; name a file, a pipe or a device such as /dev/null"));
    UniqueFd file =
        S_ISFIFO(facts.st_mode)
            ? open_for_reader(path)
            : UniqueFd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file.is_open()) return file;
    if (S_ISFIFO(facts.st_mode) && errno == ENXIO)
        return Status::unavailable(
            concat("cannot write to ", path, ": it is a pipe, and nobody reads from it"));
    return cannot_write_to(path);
}

Status write_special(int fd, const std::string& path, std::string_view text) {
    while (!text.empty()) {
        pollfd writable{.fd = fd, .events = POLLOUT, .revents = 0};
        const int ready = ::poll(&writable, 1, static_cast<int>(kWriteTimeout.count()));
        if (ready == 0)
            return Status::timeout(concat("cannot write to ", path,
                                          ": no reader has taken any bytes for ",
                                          kWriteTimeout.count() / 1000, " s"));
        // When poll() reports it ready, a pipe accepts PIPE_BUF bytes at once, even one that would
        // block.
        const std::size_t piece = std::min<std::size_t>(text.size(), PIPE_BUF);
        const ssize_t count = ready < 0 ? -1 : ::write(fd, text.data(), piece);
        if (count < 0 && errno != EINTR && errno != EAGAIN) return cannot_write_to(path);
        if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    return Status::ok();
}

}  // namespace pccl::sys
