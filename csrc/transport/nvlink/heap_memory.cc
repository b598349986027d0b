// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/heap_memory.h"

#include <utility>

#include "csrc/sys/crypto/sha256.h"
#include "csrc/transport/nvlink/gpu_heap_memory.h"
#include "csrc/transport/nvlink/host_heap_memory.h"

namespace pccl::transport::nvlink {

Result<std::shared_ptr<HeapMemory>> HeapMemory::create(const Place& place, std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<HeapMemory> memory,
                          place.kind == MemoryKind::kHost ? HostHeapMemory::create(place, bytes)
                                                          : GpuHeapMemory::create(place, bytes));
    PCCL_TRY(sys::fill_random(memory->id_));
    return memory;
}

Result<std::shared_ptr<HeapMemory>> HeapMemory::import(const Place& place, int descriptor,
                                                       const HeapExtent& extent) {
    const std::size_t bytes = extent.allocated;
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<HeapMemory> memory,
                          place.kind == MemoryKind::kHost
                              ? HostHeapMemory::import(place, descriptor, bytes)
                              : GpuHeapMemory::import(place, descriptor, bytes));
    memory->id_ = extent.id;
    return memory;
}

Status HeapMemory::map() {
    if (base_ != 0) return Status::ok();
    PCCL_ASSIGN_OR_RETURN(base_, map_all());
    return Status::ok();
}

}  // namespace pccl::transport::nvlink
