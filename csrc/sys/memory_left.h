// SPDX-License-Identifier: Apache-2.0

// Memory that is still available to this process.
#pragma once

#include <cstdint>
#include <string>

#include <pccl/status.h>

namespace pccl::sys {

struct MemoryLeft {
    std::uint64_t bytes = 0;
    std::string bound;  // the limiting resource: "the limit of /sys/fs/cgroup/job/memory.max"
};

/// Returns the least of three bounds: the machine's available memory and swap; the limits of all
/// control groups around this process, of version 1 or 2, plus swap and the file pages that they
/// would reclaim; the commit limit of the kernel, where vm.overcommit_memory = 2. The result
/// changes at any time: a request beyond it fails now, a request within it may still fail. `root`
/// is prepended to all paths, for tests. kUnavailable where /proc/meminfo cannot be read.
[[nodiscard]] PCCL_API Result<MemoryLeft> memory_left(const std::string& root = {});

}  // namespace pccl::sys
