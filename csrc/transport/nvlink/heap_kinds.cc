// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/heap_kinds.h"

#include "csrc/sys/crypto/sha256.h"
#include "csrc/transport/nvlink/gpu_heap_memory.h"
#include "csrc/transport/nvlink/host_heap_memory.h"

namespace pccl::transport::nvlink {

Result<std::shared_ptr<HeapMemory>> make_heap_memory(const HeapMemory::Place& place,
                                                     std::size_t bytes) {
    HeapId id{};
    PCCL_TRY(sys::fill_random(id));
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<HeapMemory> memory,
                          place.kind == MemoryKind::kHost ? HostHeapMemory::create(place, bytes)
                                                          : GpuHeapMemory::create(place, bytes));
    memory->name(id);
    return memory;
}

Result<std::shared_ptr<HeapMemory>> import_heap_memory(const HeapMemory::Place& place,
                                                       int descriptor, const HeapExtent& extent) {
    const std::size_t bytes = extent.allocated;
    PCCL_ASSIGN_OR_RETURN(std::shared_ptr<HeapMemory> memory,
                          place.kind == MemoryKind::kHost
                              ? HostHeapMemory::import(place, descriptor, bytes)
                              : GpuHeapMemory::import(place, descriptor, bytes));
    memory->name(extent.id);
    return memory;
}

}  // namespace pccl::transport::nvlink
