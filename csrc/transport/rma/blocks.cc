// SPDX-License-Identifier: Apache-2.0
#include "csrc/transport/rma/blocks.h"

#include <algorithm>
#include <cstring>

namespace pccl::transport {
namespace {

bool is_extent_within(const RmaExtent& extent, std::uint64_t size) {
    return extent.offset <= size && extent.bytes <= size - extent.offset;
}

}  // namespace

std::uint64_t RmaBlocks::bytes() const {
    if (list_.empty()) return first_.bytes * count_;
    std::uint64_t bytes = 0;
    for (const RmaExtent& each : list_) bytes += each.bytes;
    return bytes;
}

bool RmaBlocks::is_within(std::uint64_t size) const {
    if (!list_.empty())
        return std::ranges::all_of(
            list_, [size](const RmaExtent& each) { return is_extent_within(each, size); });
    if (!is_extent_within(first_, size)) return false;
    // The last block decides, if no offset wraps around.
    const std::uint64_t room = size - first_.offset - first_.bytes;
    return stride_ == 0 || count_ <= 1 || count_ - 1 <= room / stride_;
}

RmaExtent RmaBlocks::rest(const BlockPosition& place) const {
    const RmaExtent block = at(place.block);
    return {.offset = block.offset + place.bytes, .bytes = block.bytes - place.bytes};
}

void RmaBlocks::advance(BlockPosition& place, std::uint64_t bytes) const {
    if (bytes == 0) return;
    place.bytes += bytes;
    if (list_.empty()) {
        place.block += place.bytes / first_.bytes;
        place.bytes %= first_.bytes;
        return;
    }
    for (; place.block < count_ && place.bytes >= list_[place.block].bytes; ++place.block)
        place.bytes -= list_[place.block].bytes;
}

std::uint64_t RmaBlocks::bytes_of_next(BlockPosition place, std::size_t blocks,
                                       std::uint64_t most) const {
    std::uint64_t bytes = 0;
    for (; blocks > 0 && place.block < count_ && bytes < most; --blocks) {
        bytes += rest(place).bytes;
        place = {.block = place.block + 1, .bytes = 0};
    }
    return std::min(bytes, most);
}

void RmaBlocks::scatter(MutableBytes memory, BlockPosition& place, Bytes payload) const {
    while (!payload.empty()) {
        const RmaExtent to = rest(place);
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(to.bytes, payload.size()));
        std::memcpy(memory.data() + to.offset, payload.data(), count);
        payload = payload.subspan(count);
        advance(place, count);
    }
}

std::size_t RmaBlocks::gather(Bytes memory, BlockPosition place, std::size_t most,
                              std::span<Bytes> into) const {
    std::size_t filled = 0;
    for (std::uint64_t left = most; filled < into.size() && place.block < count_ && left > 0;
         ++filled) {
        const RmaExtent from = rest(place);
        const std::uint64_t count = std::min(from.bytes, left);
        into[filled] = memory.subspan(from.offset, count);
        left -= count;
        place = {.block = place.block + 1, .bytes = 0};
    }
    return filled;
}

}  // namespace pccl::transport
