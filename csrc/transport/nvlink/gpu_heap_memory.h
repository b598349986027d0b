// SPDX-License-Identifier: Apache-2.0

// Heap memory of a GPU (cuMemCreate), for GPUs that reach each other.
#pragma once

#include "csrc/transport/nvlink/heap_memory.h"

namespace pccl::transport::nvlink {

class GpuHeapMemory final : public HeapMemory {
   public:
    static Result<std::shared_ptr<HeapMemory>> create(const Place& place, std::size_t bytes);
    static Result<std::shared_ptr<HeapMemory>> import(const Place& place, int descriptor,
                                                      std::size_t bytes);
    ~GpuHeapMemory() override;
    GpuHeapMemory(const GpuHeapMemory&) = delete;
    GpuHeapMemory& operator=(const GpuHeapMemory&) = delete;

    [[nodiscard]] Result<UniqueFd> descriptor() const override {
        return place_.driver.export_memory(handle_);
    }

   private:
    GpuHeapMemory(const Place& place, sys::cuda::MemoryHandle handle, std::size_t bytes)
        : HeapMemory(place, bytes), handle_(handle) {}
    Result<sys::cuda::DeviceAddress> map_all() override {
        return place_.driver.map(handle_, bytes(), place_.device);
    }

    const sys::cuda::MemoryHandle handle_;
};

}  // namespace pccl::transport::nvlink
