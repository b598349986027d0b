// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/file_system.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>
#include <array>
#include <cstdint>

namespace pccl::sys {
namespace {

// linux/magic.h of some kernels lacks these.
constexpr std::uint64_t kXfs = 0x58465342;
constexpr std::uint64_t kZfs = 0x2FC12FC1;
constexpr std::array<std::uint64_t, 8> kLocal{TMPFS_MAGIC,
                                              RAMFS_MAGIC,
                                              EXT4_SUPER_MAGIC,
                                              BTRFS_SUPER_MAGIC,
                                              F2FS_SUPER_MAGIC,
                                              OVERLAYFS_SUPER_MAGIC,
                                              kXfs,
                                              kZfs};

}  // namespace

bool is_on_local_file_system(int fd) {
    struct statfs facts {};
    if (::fstatfs(fd, &facts) != 0) return false;
    const auto kind = static_cast<std::uint64_t>(facts.f_type);
    return std::ranges::find(kLocal, kind) != kLocal.end();
}

}  // namespace pccl::sys
