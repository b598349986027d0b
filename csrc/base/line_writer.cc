// SPDX-License-Identifier: Apache-2.0
#include "csrc/base/line_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "csrc/base/text/text.h"
#include "csrc/base/unique_fd.h"

namespace pccl {
namespace {

constexpr Duration kFlushTimeout = std::chrono::milliseconds(50);

bool takes_more(int fd, Duration longest) {
    pollfd polled{.fd = fd, .events = POLLOUT, .revents = 0};
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(longest);
    return ::poll(&polled, 1, static_cast<int>(wait.count())) > 0;
}

/// Calls write() on a pipe or a terminal; EAGAIN where it would block.
ssize_t write_some(int fd, std::string_view text) {
    // A new open file description: its flags are not shared with other users of the descriptor.
    const UniqueFd own(
        ::open(concat("/proc/self/fd/", fd).c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (own.is_open()) return ::write(own.get(), text.data(), text.size());
    // Opening fails for a file of another user, for example. When poll() reports room, there are
    // PIPE_BUF bytes, unless another writer is faster.
    if (takes_more(fd, Duration::zero()))
        return ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    errno = EAGAIN;
    return -1;
}

/// Returns the bytes taken, 0 where the reader has to take some first, -1 after a permanent
/// failure.
ssize_t offer(int fd, std::string_view text) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) return -1;
    ssize_t taken = -1;
    if (S_ISSOCK(facts.st_mode))
        taken = ::send(fd, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    else if (S_ISFIFO(facts.st_mode) || S_ISCHR(facts.st_mode))
        taken = write_some(fd, text);
    else
        taken = ::write(fd, text.data(), text.size());
    const bool is_later = taken < 0 && (errno == EAGAIN || errno == EINTR);
    return is_later ? 0 : taken;
}

}  // namespace

void LineWriter::write(std::string_view line) {
    if (!kept_.empty()) flush(Duration::zero());
    if (!has_room_for(line)) {
        ++lost_;
        return;
    }
    if (lost_ > 0)
        kept_ += concat("[pccl] lost ", std::exchange(lost_, 0), " lines here: nobody read them\n");
    kept_ += line;
    flush(is_stalled_ ? Duration::zero() : kFlushTimeout);
}

void LineWriter::flush(Duration timeout) {
    const Deadline deadline = Deadline::after(timeout);
    while (!kept_.empty()) {
        const ssize_t taken = offer(fd_, kept_);
        if (taken < 0) return forget();
        kept_.erase(0, static_cast<std::size_t>(taken));
        is_stalled_ = taken == 0;
        if (is_stalled_ && (deadline.passed() || !takes_more(fd_, deadline.remaining()))) return;
    }
}

void LineWriter::forget() {
    kept_.clear();
    lost_ = 0;
}

}  // namespace pccl
