// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/memory_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

#include "csrc/base/text/text.h"

namespace pccl::sys {
namespace {

/// Checks the limit in advance: the kernel kills processes that exceed it and do not ignore
/// SIGXFSZ.
Status check_limit(std::size_t bytes) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= bytes) return Status::ok();
    return Status::unavailable(concat("files of this process may have ", limit.rlim_cur,
                                      " bytes at most (ulimit -f), and shared memory takes one of ",
                                      bytes, ": raise the limit"));
}

}  // namespace

Result<UniqueFd> make_memory_file(const std::string& name, std::size_t bytes) {
    constexpr std::size_t kLongestName = 200;
    const std::string shown = name.substr(0, kLongestName);
    PCCL_TRY(check_limit(bytes));
    UniqueFd file(::memfd_create(shown.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open())
        return Status::from_errno(errno, concat("cannot create the memory file ", shown));
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
        return Status::from_errno(
            errno, concat("cannot size the memory file ", shown, " to ", bytes, " bytes"));
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return Status::from_errno(errno, concat("cannot seal the memory file ", shown));
    return file;
}

}  // namespace pccl::sys
