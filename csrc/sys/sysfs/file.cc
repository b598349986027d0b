#include "csrc/sys/sysfs/file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "csrc/base/text.h"
#include "csrc/base/unique_fd.h"

namespace pccl::sys {
namespace {

/// Into a new file, never through a link that somebody has put there. In a folder that others may
/// write to, one that is there already is theirs, or was left by an earlier process of this number.
UniqueFd make_file(const std::string& path) {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    constexpr mode_t kMode = 0666;  // but for the umask
    UniqueFd file(::open(path.c_str(), kFlags, kMode));
    if (!file.is_open() && errno == EEXIST && ::unlink(path.c_str()) == 0)
        file.reset(::open(path.c_str(), kFlags, kMode));
    return file;
}

Status write_all(const std::string& path, std::string_view text) {
    const UniqueFd file = make_file(path);
    if (!file.is_open()) return Status::from_errno(errno, concat("cannot write ", path));
    while (!text.empty()) {
        const ssize_t count = ::write(file.get(), text.data(), text.size());
        if (count < 0 && errno != EINTR)
            return Status::from_errno(errno, concat("cannot write ", path));
        if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    return Status::ok();
}

}  // namespace

Result<std::string> read_start(const std::string& path, std::size_t limit) {
    std::error_code error;
    if (std::filesystem::is_directory(path, error))
        return Status::unavailable(concat("cannot read ", path, ": it is a folder"));
    std::ifstream file(path, std::ios::binary);
    if (!file) return Status::from_errno(errno, concat("cannot read ", path));
    std::string text(limit, '\0');
    file.read(text.data(), static_cast<std::streamsize>(text.size()));
    text.resize(static_cast<std::size_t>(file.gcount()));
    return text;
}

Result<std::string> read_file(const std::string& path, std::size_t limit) {
    PCCL_ASSIGN_OR_RETURN(std::string text, read_start(path, limit + 1));
    if (text.size() > limit)
        return Status::resource_exhausted(
            concat(path, " is longer than ", limit, " bytes, the most that is read"));
    return text;
}

Result<std::string> read_open(int fd, std::size_t limit) {
    std::string bytes(limit, '\0');
    std::size_t got = 0;
    for (ssize_t more = 1; more != 0 && got < limit; got += static_cast<std::size_t>(more)) {
        do more = ::read(fd, bytes.data() + got, limit - got);
        while (more < 0 && errno == EINTR);
        if (more < 0) return Status::from_errno(errno, "cannot be read");
    }
    bytes.resize(got);
    return bytes;
}

Status write_file(const std::string& path, const std::string& text) {
    // Several processes may write one file at a time, and several threads.
    static std::atomic<int> drafts{0};
    const std::string draft = concat(path, ".", ::getpid(), ".", drafts.fetch_add(1), ".part");
    Status written = write_all(draft, text);
    if (written.is_ok() && std::rename(draft.c_str(), path.c_str()) != 0)
        written = Status::from_errno(errno, concat("cannot write ", path));
    if (!written.is_ok()) ::unlink(draft.c_str());
    return written;
}

}  // namespace pccl::sys
