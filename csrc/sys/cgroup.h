// SPDX-License-Identifier: Apache-2.0

// CPU quota of a container.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pccl/export.h>

namespace pccl::sys {

/// The control groups of this process that may limit its CPU time: its own and those above it, of
/// version 1 and 2, as far as they are visible here. A container may see its own group as the root.
class PCCL_API CpuGroups {
   public:
    /// Finds them now; a process that is moved to another group needs a new object. `root` is the
    /// folder that contains proc and sys.
    static CpuGroups of_process(const std::string& root = "/");

    /// Returns the number of cores whose time the groups allow now (cpu.max of version 2,
    /// cpu.cfs_quota_us of version 1); infinity where there is no quota.
    [[nodiscard]] double quota() const;
    /// Returns a number that has grown whenever a quota has stopped one of the groups since the
    /// last call.
    [[nodiscard]] std::uint64_t throttled() const;

    /// Returns the folders, each group before those above it.
    [[nodiscard]] const std::vector<std::string>& folders() const { return folders_; }

   private:
    std::vector<std::string> folders_;
};

/// Returns CpuGroups::quota() of this process.
[[nodiscard]] PCCL_API double cpu_quota(const std::string& root = "/");

}  // namespace pccl::sys
