// A full memory barrier in other processes: it lets the side that runs often do without one.
#pragma once

#include "csrc/base/export.h"

namespace pccl::sys {

/// Lets this process take part; false where the kernel cannot do it (membarrier(2), Linux 4.16).
[[nodiscard]] PCCL_API bool join_process_barriers();

/// Every thread of every process that has joined passes a full barrier before this returns: some
/// microseconds, as running threads are interrupted. To be called after joining.
PCCL_API void process_barrier();

}  // namespace pccl::sys
