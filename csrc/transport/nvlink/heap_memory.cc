// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/heap_memory.h"

namespace pccl::transport::nvlink {

Status HeapMemory::map() {
    if (base_ != 0) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(base_, map_all());
    return Status::ok();
}

}  // namespace pccl::transport::nvlink
