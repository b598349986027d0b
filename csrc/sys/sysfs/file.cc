// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/sysfs/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/sysfs/special_file.h"

namespace pccl::sys {
namespace {

Status cannot_write(const std::string& path) {
    return Status::from_errno(errno, concat("cannot write ", path));
}

/// Makes a new file and never follows a link. In a folder that others may write to, an existing
/// file is another user's, or was left by an earlier process with this pid.
UniqueFd make_file(const std::string& path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    constexpr mode_t kMode = 0666;  // reduced by the umask
    UniqueFd file(::open(path.c_str(), kFlags, kMode));
    if (!file.is_open() && errno == EEXIST && ::unlink(path.c_str()) == 0)
        file.reset(::open(path.c_str(), kFlags, kMode));
    return file;
}

/// Returns a name that is unique among processes and threads that write one file at the same time.
std::string draft_of(const std::string& path) {
    static std::atomic<int> drafts{0};
    return concat(path, ".", ::getpid(), ".", drafts.fetch_add(1), ".part");
}

Status write_draft(const std::string& draft, const std::string& path, std::string_view text) {
    const UniqueFd file = make_file(draft);
    if (!file.is_open()) return cannot_write(path);
    while (!text.empty()) {
        const ssize_t count = ::write(file.get(), text.data(), text.size());
        if (count < 0 && errno != EINTR) return cannot_write(path);
        if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    return Status::ok();
}

}  // namespace

Status check_regular(int fd, std::string_view what) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0) return Status::from_errno(errno, concat("cannot look at ", what));
    if (S_ISREG(facts.st_mode)) return Status::ok();
    return Status::unavailable(concat(what, ": this is no file but ", kind_of(facts.st_mode)));
}

Result<std::string> read_start(const std::string& path, std::size_t limit) {
    const std::string what = concat("cannot read ", path);
    const UniqueFd file = open_to_read(path);
    if (!file.is_open()) return Status::from_errno(errno, what);
    PCCL_TRY(check_regular(file.get(), what));
    auto text = read_open(file.get(), limit);
    if (text.is_ok()) return text;
    return text.status().with_context(path);
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
    PCCL_ASSIGN_OR_RETURN(std::string text, read_start(path, limit + 1));
    if (text.size() > limit)
        return Status::resource_exhausted(
            concat(path, " is longer than ", limit, " bytes, the most that is read"));
    return text;
}

Result<std::string> read_open(int fd, std::size_t limit) {
    constexpr std::size_t kAtFirst = 64 * kKiB;
    std::string bytes;
    std::size_t got = 0;
    for (ssize_t more = 1; more != 0 && got < limit; got += static_cast<std::size_t>(more)) {
        if (got == bytes.size()) bytes.resize(std::min(limit, std::max(kAtFirst, 2 * got)));
        do more = ::read(fd, bytes.data() + got, bytes.size() - got);
        while (more < 0 && errno == EINTR);
        if (more < 0) return Status::from_errno(errno, "cannot be read");
    }
    bytes.resize(got);
    return bytes;
}

Status write_file(const std::string& path, std::string_view text) {
    PCCL_ASSIGN_OR_RETURN(const UniqueFd special, open_special(path));
    if (special.is_open()) return write_special(special.get(), path, text);
    const std::string draft = draft_of(path);
    Status written = write_draft(draft, path, text);
    if (written.is_ok() && std::rename(draft.c_str(), path.c_str()) != 0)
        written = cannot_write(path);
    if (!written.is_ok()) ::unlink(draft.c_str());
    return written;
}

Status check_writable(const std::string& path) {
    PCCL_ASSIGN_OR_RETURN(const UniqueFd special, open_special(path));
    if (special.is_open()) return Status::ok();
    const std::string draft = draft_of(path);
    const UniqueFd file = make_file(draft);
    if (!file.is_open()) return cannot_write(path);
    ::unlink(draft.c_str());
    return Status::ok();
}

}  // namespace pccl::sys
