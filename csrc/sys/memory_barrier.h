// SPDX-License-Identifier: Apache-2.0

// Full memory barrier in other processes: the frequent side can then omit its own barrier.
#pragma once

#include <pccl/export.h>

namespace pccl::sys {

/// Registers this process; false where the kernel does not support it (membarrier(2), Linux 4.16).
[[nodiscard]] PCCL_API bool join_process_barriers();

/// Makes every thread of every registered process pass a full barrier before it returns. This takes
/// some microseconds, since running threads are interrupted. Requires join_process_barriers()
/// first.
PCCL_API void process_barrier();

}  // namespace pccl::sys
