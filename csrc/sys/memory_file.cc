// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/memory_file.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string_view>

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

Status not_created(int error, std::string_view name) {
    Status status = Status::from_errno(error, concat("cannot create the memory file ", name));
    if (error != EPERM && error != ENOSYS) return status;
    return status.with_message(
        concat(status.message(), "; let the seccomp profile of this container allow memfd_create"));
}

}  // namespace

Result<UniqueFd> make_memory_file(const std::string& name, std::size_t bytes) {
    constexpr std::size_t kLongestName = 200;
    const std::string shown = name.substr(0, kLongestName);
    PCCL_TRY(check_limit(bytes));
    UniqueFd file(::memfd_create(shown.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file.is_open()) return not_created(errno, shown);
    if (::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0)
        return Status::from_errno(
            errno, concat("cannot size the memory file ", shown, " to ", bytes, " bytes"));
    if (::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
        return Status::from_errno(errno, concat("cannot seal the memory file ", shown));
    return file;
}

void prefer_numa_node(const UniqueFd& file, std::size_t bytes, int node) {
    constexpr int kNodes = 64;  // bits of the mask
    if (node < 0 || node >= kNodes) return;
    void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (memory == MAP_FAILED) return;
    const std::uint64_t mask = std::uint64_t{1} << static_cast<unsigned>(node);
    // The policy of a shared mapping is that of its file; it stays after the mapping has gone.
    static_cast<void>(
        ::syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, &mask, std::size_t{kNodes} + 1, 0U));
    ::munmap(memory, bytes);
}

}  // namespace pccl::sys
