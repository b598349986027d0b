// SPDX-License-Identifier: Apache-2.0
#include "csrc/sys/memory_barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pccl::sys {

bool join_process_barriers() {
    static const bool joined =
        ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
    return joined;
}

void process_barrier() { ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

}  // namespace pccl::sys
