// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "csrc/base/open_error.h"
#include "csrc/base/text/text.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/host.h"
#include "csrc/sys/sysfs/file.h"

namespace pccl::sys {
namespace {

constexpr mode_t kPermissions = 07777;
constexpr mode_t kRead = S_IRGRP | S_IROTH;

/// Returns "0640".
std::string octal(mode_t mode) {
    std::string digits = "0";
    for (const int shift : {6, 3, 0}) digits += static_cast<char>('0' + ((mode >> shift) & 07));
    return digits;
}

}  // namespace

Status check_private(int fd, std::string_view what, const Forbidden& forbidden) {
    struct stat facts {};
    if (::fstat(fd, &facts) != 0)
        return Status::invalid_argument(
            Status::from_errno(errno, concat("cannot look at ", what)).message());
    if (!S_ISREG(facts.st_mode))
        return Status::invalid_argument(concat(what, " is no regular file; name one"));
    const bool is_of_root = facts.st_uid == 0 && ::geteuid() != 0;
    if (facts.st_uid != ::geteuid() && !is_of_root)
        return Status::invalid_argument(concat(what, " belongs to user ", facts.st_uid,
                                               ", this process runs as user ", ::geteuid(),
                                               "; name a file of your own"));
    const mode_t mode = facts.st_mode & kPermissions;
    const mode_t excess = mode & (is_of_root ? forbidden.of_root : forbidden.of_own);
    if (excess == 0) return Status::ok();
    return Status::invalid_argument(concat(
        what, " may be ", (excess & kRead) != 0 ? "read" : "written to", " by other users (mode ",
        octal(mode), "); take that away: chmod ", is_of_root ? "640" : "600"));
}

Result<std::string> read_private(const std::string& path, std::size_t most) {
    constexpr Forbidden kWriting{.of_own = S_IWGRP | S_IWOTH, .of_root = S_IWGRP | S_IWOTH};
    if (path.empty()) return Status::unavailable("no place for one");
    const UniqueFd file = open_to_read(path, O_NOFOLLOW);
    if (!file.is_open()) {
        if (errno == ENOENT || errno == ENOTDIR) return Status::unavailable("there is none");
        if (errno == ELOOP) return Status::invalid_argument("it is a link; name a file");
        return open_error(errno, "cannot be opened");
    }
    PCCL_TRY(check_private(file.get(), "it", kWriting));
    return read_open(file.get(), most);
}

std::string cached_file(std::string_view folder, std::string_view what) {
    return concat(folder, "/pccl/", what, "-", machine_name(), "-", host_name(), ".txt");
}

Status write_cached(const std::string& path, const std::string& text) {
    std::error_code error;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
    return write_file(path, text);
}

}  // namespace pccl::sys
