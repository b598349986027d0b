// SPDX-License-Identifier: Apache-2.0

// Size of a collective, as capsules and users' queries count it.
#pragma once

#include <algorithm>
#include <cstdint>

#include "csrc/schedule/schedule.h"

namespace pccl {

/// Returns the bytes of the largest buffer of a collective over `ranks` ranks with blocks of equal
/// length.
inline std::uint64_t largest_buffer(schedule::CollectiveKind kind, int ranks,
                                    std::uint64_t block_bytes) {
    const int blocks = std::max(schedule::blocks(kind, schedule::Buffer::kInput, ranks),
                                schedule::blocks(kind, schedule::Buffer::kOutput, ranks));
    return block_bytes * static_cast<std::uint64_t>(blocks);
}

}  // namespace pccl
