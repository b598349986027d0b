// SPDX-License-Identifier: Apache-2.0

// Time that the threads of this process have run on cores, and waited for one.
#pragma once

#include <pccl/deadline.h>
#include <pccl/export.h>

namespace pccl::sys {

struct CpuTimes {
    Duration ran{};
    Duration queued{};  // runnable, while other threads had the cores
};

/// Returns the sums over all threads that live; zero where the kernel does not count them
/// (CONFIG_SCHED_INFO). Looks at 1024 threads at most.
[[nodiscard]] PCCL_API CpuTimes cpu_times();

}  // namespace pccl::sys
