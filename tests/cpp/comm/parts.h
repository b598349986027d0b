// SPDX-License-Identifier: Apache-2.0

// The data of one side of a collective: a vector for each rank's block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "csrc/collective/collective.h"

namespace pccl::comm {

using Values = std::vector<std::int32_t>;

/// Of `parts`, which must outlive them.
inline std::vector<Block> blocks_of(std::vector<Values>& parts) {
    std::vector<Block> blocks;
    for (Values& part : parts)
        blocks.push_back({reinterpret_cast<std::byte*>(part.data()), part.size()});
    return blocks;
}

}  // namespace pccl::comm
