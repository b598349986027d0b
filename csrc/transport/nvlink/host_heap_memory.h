// SPDX-License-Identifier: Apache-2.0

// Heap memory in the host, for GPUs that do not reach each other: a memory file, which every
// process pins and maps for its GPU. Its pages are on the NUMA node of the GPU that owns it, where
// the kernel permits that.
#pragma once

#include "csrc/transport/nvlink/heap_memory.h"

namespace pccl::transport::nvlink {

class HostHeapMemory final : public HeapMemory {
   public:
    /// Errors: those of make_memory_file().
    static Result<std::shared_ptr<HeapMemory>> create(const Place& place, std::size_t bytes);
    /// kInvalidArgument where the file has not `bytes`.
    static Result<std::shared_ptr<HeapMemory>> import(const Place& place, int descriptor,
                                                      std::size_t bytes);
    ~HostHeapMemory() override;
    HostHeapMemory(const HostHeapMemory&) = delete;
    HostHeapMemory& operator=(const HostHeapMemory&) = delete;

    [[nodiscard]] Result<UniqueFd> descriptor() const override;

   private:
    HostHeapMemory(const Place& place, UniqueFd file, std::size_t bytes)
        : HeapMemory(place, bytes), file_(std::move(file)) {}
    Result<sys::cuda::DeviceAddress> map_all() override;

    const UniqueFd file_;
    sys::cuda::HostMapping mapping_;
};

}  // namespace pccl::transport::nvlink
