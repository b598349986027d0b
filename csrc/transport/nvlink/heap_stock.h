// SPDX-License-Identifier: Apache-2.0

// GPU memory for symmetric heaps, which all groups of a process share: ranges of allocations that
// every peer maps once, as a whole.
//
// So a further group allocates, clears and maps nothing, and need not wait for running GPU work. A
// range is never reused: the last kernel of a peer may still write to the range of a group that has
// ended here. An allocation is freed with the last group that has a range of it, on this rank or a
// peer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include <pccl/status.h>
#include "csrc/base/ids.h"
#include "csrc/base/unique_fd.h"
#include "csrc/sys/cuda/driver.h"

namespace pccl::transport::nvlink {

/// Name of an allocation of heap memory, unique among all processes.
using HeapId = std::array<std::uint8_t, 16>;

/// Position of a heap in its allocation. Travels between processes.
struct HeapExtent {
    HeapId id{};
    std::uint64_t allocated = 0;  // bytes of the whole allocation
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
};

/// Allocation on this process's GPU or a peer's, mapped for this process's GPU.
class HeapMemory {
   public:
    struct Place {
        sys::cuda::Driver& driver;
        int device = 0;  // GPU that maps it
    };
    /// Allocates zeroed memory.
    static Result<std::shared_ptr<HeapMemory>> create(const Place& place, std::size_t bytes);
    /// Maps an allocation of a peer. The caller keeps ownership of `descriptor`.
    static Result<std::shared_ptr<HeapMemory>> import(const Place& place, int descriptor,
                                                      const HeapExtent& extent);
    ~HeapMemory();
    HeapMemory(const HeapMemory&) = delete;
    HeapMemory& operator=(const HeapMemory&) = delete;

    [[nodiscard]] const HeapId& id() const { return id_; }
    [[nodiscard]] sys::cuda::DeviceAddress base() const { return base_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    /// Returns a descriptor for peers to import().
    [[nodiscard]] Result<UniqueFd> descriptor() const {
        return place_.driver.export_memory(handle_);
    }

   private:
    HeapMemory(const Place& place, sys::cuda::MemoryHandle handle, std::size_t bytes)
        : place_(place), handle_(handle), bytes_(bytes) {}
    Status map();

    const Place place_;
    const sys::cuda::MemoryHandle handle_;
    const std::size_t bytes_;
    HeapId id_{};
    sys::cuda::DeviceAddress base_ = 0;
};

/// Part of an allocation; empty by default.
struct HeapRange {
    std::shared_ptr<HeapMemory> memory{};
    HeapExtent extent{};
    [[nodiscard]] sys::cuda::DeviceAddress address() const {
        return memory == nullptr ? 0 : memory->base() + extent.offset;
    }
};

/// Heap memory of a process on one GPU, and the peers' memory that it has mapped there.
/// Thread-safe.
class PCCL_API HeapStock {
   public:
    static constexpr std::size_t kAllocation = 18 * kMiB;  // four heaps of a DeviceGroup

    /// Returns the process's stock for `device`, which lives until its last owner drops it.
    static std::shared_ptr<HeapStock> of(sys::cuda::Driver& driver, int device);

    /// Claims unused, zeroed memory. A claim above kAllocation gets an allocation of its own.
    Result<HeapRange> claim(std::size_t bytes);
    /// Maps a range that a peer claimed. kInvalidArgument where its allocation has no such range.
    Result<HeapRange> join(const UniqueFd& descriptor, const HeapExtent& extent);

   private:
    explicit HeapStock(const HeapMemory::Place& place) : place_(place) {}
    Result<std::shared_ptr<HeapMemory>> allocate(std::size_t bytes) const;

    const HeapMemory::Place place_;
    std::mutex mutex_;
    std::weak_ptr<HeapMemory> current_;  // source of claim()
    std::size_t claimed_ = 0;            // bytes of current_
    std::map<HeapId, std::weak_ptr<HeapMemory>> joined_;
};

}  // namespace pccl::transport::nvlink
