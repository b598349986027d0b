// SPDX-License-Identifier: Apache-2.0
#include "csrc/device/device_stage.h"

#include <bit>

namespace pccl::device {
namespace {

using sys::cuda::DeviceAddress;

// Alignment in bytes that suits the widest loads.
constexpr std::size_t kAlignment = 256;

std::size_t room_for(const Block& block, DataType type) {
    const std::size_t bytes = block.count * size_of(type);
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

DeviceStage::~DeviceStage() {
    for (const DeviceAddress base : memory_) static_cast<void>(driver_.deallocate(base));
}

Result<std::vector<Block>> DeviceStage::place(std::span<const Block> blocks, DataType type) {
    std::size_t needed = kAlignment;
    for (const Block& block : blocks) needed += room_for(block, type);
    if (needed > capacity_) {
        const std::size_t rounded = std::bit_ceil(needed);
        PCCL_ASSIGN_OR_RETURN(const DeviceAddress base, driver_.allocate(device_, rounded));
        memory_.push_back(base);
        capacity_ = rounded;
        held_ += rounded;
    }
    std::vector<Block> placed;
    auto* at = std::bit_cast<std::byte*>(memory_.back());
    for (const Block& block : blocks) {
        placed.push_back({at, block.count});
        at += room_for(block, type);
    }
    return placed;
}

Status DeviceStage::copy(std::span<const Block> to, std::span<const Block> from, DataType type,
                         kernels::Stream stream) {
    for (std::size_t i = 0; i < to.size(); ++i) {
        const std::size_t bytes = from[i].count * size_of(type);
        if (bytes > 0)
            PCCL_TRY(driver_.copy(std::bit_cast<DeviceAddress>(to[i].data),
                                  std::bit_cast<DeviceAddress>(from[i].data), bytes, stream));
    }
    return Status::ok();
}

}  // namespace pccl::device
