// SPDX-License-Identifier: Apache-2.0

// Memory in which kernels of several processes meet: an allocation of one process, which its peers
// map as a whole.
//
// It is of a GPU where the GPUs reach each other's memory. Otherwise it is a memory file in the
// host, which every process pins and maps for its GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <pccl/export.h>
#include <pccl/status.h>
#include "csrc/base/unique_fd.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::transport::nvlink {

enum class MemoryKind : std::uint8_t { kGpu, kHost };

/// Name of an allocation of heap memory, unique among all processes.
using HeapId = std::array<std::uint8_t, 16>;

/// Position of a heap in its allocation. Travels between processes.
struct HeapExtent {
    HeapId id{};
    std::uint64_t allocated = 0;  // bytes of the whole allocation
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// Allocation of this process or a peer.
class HeapMemory {
   public:
    struct Place {
        sys::cuda::Driver& driver;
        int device = 0;  // GPU that maps it
        MemoryKind kind = MemoryKind::kGpu;
    };
    virtual ~HeapMemory() = default;
    HeapMemory(const HeapMemory&) = delete;
    HeapMemory& operator=(const HeapMemory&) = delete;

    /// Maps it for this process's GPU, once.
    Status map();
    /// Returns a descriptor for peers to import_heap_memory() (heap_kinds.h).
    [[nodiscard]] virtual Result<UniqueFd> descriptor() const = 0;

    void name(const HeapId& id) { id_ = id; }
    [[nodiscard]] const HeapId& id() const { return id_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// Returns its address for kernels; 0 before map().
    [[nodiscard]] sys::cuda::DeviceAddress base() const { return base_; }

   protected:
    HeapMemory(const Place& place, std::size_t bytes) : place_(place), bytes_(bytes) {}
    /// Returns the address where it has mapped the allocation.
    virtual Result<sys::cuda::DeviceAddress> map_all() = 0;

    const Place place_;

   private:
    const std::size_t bytes_;
    HeapId id_{};
    sys::cuda::DeviceAddress base_ = 0;
};

}  // namespace pccl::transport::nvlink
