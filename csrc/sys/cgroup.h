// SPDX-License-Identifier: Apache-2.0

// CPU quota of a container.
#pragma once

#include <string>

#include <pccl/export.h>

namespace pccl::sys {

/// Returns the number of cores whose time this process's cgroup, and those above it, may use
/// (cpu.max of cgroup v2, cpu.cfs_quota_us of v1); infinity where there is no quota. `root` is the
/// folder that contains proc and sys.
[[nodiscard]] PCCL_API double cpu_quota(const std::string& root = "/");

}  // namespace pccl::sys
