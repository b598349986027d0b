// SPDX-License-Identifier: Apache-2.0

// Check for blocks that share memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "csrc/collective/collective.h"

namespace pccl {

/// Returns whether any byte belongs to two of the blocks, whose elements have `element_bytes`
/// bytes.
[[nodiscard]] inline bool share_memory(std::span<const Block> blocks, std::size_t element_bytes) {
    std::vector<Block> sorted(blocks.begin(), blocks.end());
    std::erase_if(sorted, [](const Block& block) { return block.count == 0; });
    std::ranges::sort(sorted, {}, &Block::data);
    const auto meets = [element_bytes](const Block& block, const Block& next) {
        return next.data < block.data + block.count * element_bytes;
    };
    return std::ranges::adjacent_find(sorted, meets) != sorted.end();
}

}  // namespace pccl
