// SPDX-License-Identifier: Apache-2.0

// Functions that torch.cuda.CUDAPluggableAllocator finds by name. They allocate memory that peers
// can map, even where torch's own allocator maps memory in segments (expandable segments).

#include <sys/types.h>

#include "csrc/base/log/log.h"
#include "csrc/device/device_memory.h"

extern "C" {

[[gnu::visibility("default")]] void* pccl_gpu_allocate(ssize_t bytes, int device, void*) {
    auto memory = pccl::device::allocate_shareable(device, static_cast<std::size_t>(bytes));
    if (memory.is_ok()) return *memory;
    pccl::log(pccl::LogLevel::kError, "no GPU memory to share: ", memory.status().message());
    return nullptr;
}

[[gnu::visibility("default")]] void pccl_gpu_free(void* memory, ssize_t, int, void*) {
    if (memory == nullptr) return;
    const pccl::Status freed = pccl::device::free_shareable(memory);
    if (!freed.is_ok())
        pccl::log(pccl::LogLevel::kError, "GPU memory was not freed: ", freed.message());
}

}  // extern "C"
