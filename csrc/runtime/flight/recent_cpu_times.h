// SPDX-License-Identifier: Apache-2.0

// Times of this process's threads on cores, read at most once a second: that takes some
// microseconds a thread, and each group of a process needs them.
#pragma once

#include "csrc/sys/cpu/cpu_times.h"

namespace pccl::runtime {

/// Returns times that are at most a second old. Thread-safe.
[[nodiscard]] sys::CpuTimes recent_cpu_times();

}  // namespace pccl::runtime
