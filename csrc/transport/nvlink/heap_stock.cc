// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/nvlink/heap_stock.h"

#include <algorithm>
#include <array>
#include <utility>

#include "csrc/base/ids.h"
#include "csrc/base/text/text.h"
#include "csrc/sys/cuda/per_device.h"
#include "csrc/transport/nvlink/heap_kinds.h"

namespace pccl::transport::nvlink {
namespace {

// A unit keeps groups from sharing a cache line, or a page of the GPU's finest tables.
constexpr std::size_t kUnit = 64 * kKiB;

std::size_t rounded_up(std::size_t bytes, std::size_t unit) {
    return (bytes + unit - 1) / unit * unit;
}

/// Checks an extent of a process that allocates multiples of `unit`.
Status check(const HeapExtent& extent, std::size_t unit) {
    const std::size_t most = rounded_up(std::max(HeapStock::kAllocation, extent.bytes), unit);
    if (extent.allocated <= most && extent.offset <= extent.allocated &&
        extent.bytes <= extent.allocated - extent.offset && extent.offset % kUnit == 0)
        return Status::ok();
    return Status::invalid_argument(concat("a peer offered ", extent.bytes, " bytes at ",
                                           extent.offset, " of an allocation of ",
                                           extent.allocated));
}

}  // namespace

std::shared_ptr<HeapStock> HeapStock::of(sys::cuda::Driver& driver, int device, MemoryKind kind) {
    static std::array<sys::cuda::PerDevice<HeapStock>, 2> stocks;  // by kind
    const auto make = [&]() -> Result<std::shared_ptr<HeapStock>> {
        return std::shared_ptr<HeapStock>(
            new HeapStock({.driver = driver, .device = device, .kind = kind}));
    };
    return *stocks.at(static_cast<std::size_t>(kind)).find_or(driver, device, make);
}

Result<std::size_t> HeapStock::unit() const {
    if (place_.kind == MemoryKind::kHost) return kUnit;
    return place_.driver.granularity(place_.device);
}

Result<std::shared_ptr<HeapMemory>> HeapStock::allocate(std::size_t bytes) const {
    PCCL_ASSIGN_OR_RETURN(const std::size_t multiple, unit());
    return make_heap_memory(place_, rounded_up(bytes, multiple));
}

Status HeapStock::map(const HeapRange& range) {
    const std::lock_guard lock(mutex_);
    return range.memory->map();
}

Result<HeapRange> HeapStock::claim(std::size_t bytes) {
    const std::size_t length = rounded_up(bytes, kUnit);
    if (length > kAllocation) {
        PCCL_ASSIGN_OR_RETURN(auto memory, allocate(length));
        const HeapExtent extent{memory->id(), memory->bytes(), 0, length};
        return HeapRange{std::move(memory), extent};
    }
    const std::lock_guard lock(mutex_);
    auto memory = current_.lock();
    if (memory == nullptr || length > memory->bytes() - claimed_) {
        PCCL_ASSIGN_OR_RETURN(memory, allocate(kAllocation));
        current_ = memory;
        claimed_ = 0;
    }
    const std::size_t offset = std::exchange(claimed_, claimed_ + length);
    const HeapExtent extent{memory->id(), memory->bytes(), offset, length};
    return HeapRange{std::move(memory), extent};
}

Result<HeapRange> HeapStock::join(const UniqueFd& descriptor, const HeapExtent& extent) {
    PCCL_ASSIGN_OR_RETURN(const std::size_t multiple, unit());
    PCCL_TRY(check(extent, multiple));
    const std::lock_guard lock(mutex_);
    std::erase_if(joined_, [](const auto& known) { return known.second.expired(); });
    auto memory = joined_[extent.id].lock();
    if (memory == nullptr) {
        PCCL_ASSIGN_OR_RETURN(memory, import_heap_memory(place_, descriptor.get(), extent));
        joined_[extent.id] = memory;
    }
    if (memory->bytes() != extent.allocated)
        return Status::invalid_argument(concat("a peer's allocation had ", memory->bytes(),
                                               " bytes, and now has ", extent.allocated));
    return HeapRange{std::move(memory), extent};
}

}  // namespace pccl::transport::nvlink
