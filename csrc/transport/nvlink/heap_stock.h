// SPDX-License-Identifier: Apache-2.0

// Memory for symmetric heaps, which all groups of a process share: ranges of allocations that every
// peer maps once, as a whole.
//
// So a further group allocates, clears and maps nothing, and need not wait for running GPU work. A
// range is never reused: the last kernel of a peer may still write to the range of a group that has
// ended here. An allocation is freed with the last group that has a range of it, on this rank or a
// peer.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/cuda/driver.h"
#include "csrc/transport/nvlink/heap_memory.h"

namespace pccl::transport::nvlink {

/// Part of an allocation; empty by default.
struct HeapRange {
    std::shared_ptr<HeapMemory> memory{};
    HeapExtent extent{};
    [[nodiscard]] sys::cuda::DeviceAddress address() const {
        return memory == nullptr ? 0 : memory->base() + extent.offset;
    }
};

/// Heap memory of one kind of a process for one GPU, and the peers' memory that it has mapped
/// there. Thread-safe.
class PCCL_API HeapStock {
   public:
    static constexpr std::size_t kAllocation = 18 * kMiB;  // four heaps of a DeviceGroup

    /// Returns the process's stock for `device`, which lives until its last owner drops it.
    static std::shared_ptr<HeapStock> of(sys::cuda::Driver& driver, int device,
                                         MemoryKind kind = MemoryKind::kGpu);

    /// Claims unused, zeroed memory. A claim above kAllocation gets an allocation of its own.
    Result<HeapRange> claim(std::size_t bytes);
    /// Takes a range that a peer claimed. kInvalidArgument where its allocation has no such range.
    Result<HeapRange> join(const UniqueFd& descriptor, const HeapExtent& extent);
    /// Maps the allocation of a range where that is not done yet.
    Status map(const HeapRange& range);

   private:
    explicit HeapStock(const HeapMemory::Place& place) : place_(place) {}
    /// Returns the unit of allocations in bytes.
    [[nodiscard]] Result<std::size_t> unit() const;
    Result<std::shared_ptr<HeapMemory>> allocate(std::size_t bytes) const;

    const HeapMemory::Place place_;
    std::mutex mutex_;
    std::weak_ptr<HeapMemory> current_;  // source of claim()
    std::size_t claimed_ = 0;            // bytes of current_
    std::map<HeapId, std::weak_ptr<HeapMemory>> joined_;
};

}  // namespace pccl::transport::nvlink
