// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/gpu_heap_memory.h"

namespace pccl::transport::nvlink {

Result<std::shared_ptr<HeapMemory>> GpuHeapMemory::create(const Place& place, std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(const auto handle, place.driver.create(place.device, bytes));
    std::shared_ptr<GpuHeapMemory> memory(new GpuHeapMemory(place, handle, bytes));
    PCCL_TRY(memory->map());
    PCCL_TRY(place.driver.clear(memory->base(), bytes));
    return std::shared_ptr<HeapMemory>(std::move(memory));
}

Result<std::shared_ptr<HeapMemory>> GpuHeapMemory::import(const Place& place, int descriptor,
                                                          std::size_t bytes) {
    PCCL_ASSIGN_OR_RETURN(const auto handle, place.driver.import_memory(descriptor));
    return std::shared_ptr<HeapMemory>(new GpuHeapMemory(place, handle, bytes));
}

GpuHeapMemory::~GpuHeapMemory() {
    if (base() != 0) static_cast<void>(place_.driver.unmap(base(), bytes()));
    static_cast<void>(place_.driver.release(handle_));
}

}  // namespace pccl::transport::nvlink
