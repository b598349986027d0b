// How much more memory this process can have.
#pragma once

#include <cstdint>
#include <string>

#include "csrc/base/status.h"

namespace pccl::sys {

struct MemoryLeft {
    std::uint64_t bytes = 0;
    std::string bound;  // what bounds it: "the limit of /sys/fs/cgroup/job/memory.max"
};

/// The least of what the machine has, with its swap; of the limit of every control group around
/// this process, of version 1 or 2, with the files that it would give up; and of what the kernel
/// promises at most, where it counts promises (vm.overcommit_memory = 2). It changes at any moment:
/// what does not fit now is refused, and what fits is no promise. `root` is before all paths, for
/// tests. kUnavailable where /proc/meminfo cannot be read.
[[nodiscard]] PCCL_API Result<MemoryLeft> memory_left(const std::string& root = {});

}  // namespace pccl::sys
